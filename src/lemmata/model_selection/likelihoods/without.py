"""Models without an information criterion, and the reason why: either no likelihood, or no count of parameters."""

from lemmata.model_selection.likelihoods.account import without

without(
    "it maximizes a margin, which is not the likelihood of anything",
    "SVC",
    "NuSVC",
    "LinearSVC",
    "SVR",
    "NuSVR",
    "LinearSVR",
    "OneClassSVM",
    "Perceptron",
    "KernelPerceptron",
)
without(
    "it keeps the rows themselves and has no parameters that were fitted",
    "KNeighborsClassifier",
    "KNeighborsRegressor",
    "NearestNeighbors",
    "RadiusNeighborsClassifier",
    "RadiusNeighborsRegressor",
    "KernelDensity",
    "KernelRegression",
    "KernelVoteClassifier",
    "RandomWalkClassifier",
)
without(
    "nobody can count the parameters of many trees or models that were fitted after looking at the rows",
    "AdaBoostClassifier",
    "AdaBoostRegressor",
    "BaggingClassifier",
    "BaggingRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "StackingClassifier",
    "StackingRegressor",
    "VotingClassifier",
    "VotingRegressor",
)
without("its dissimilarities belong to no density", "KMedoids")
without("its draws average over the posterior, and no parameters are at their best", "GibbsMixture")
without("it draws rows without knowing how probable they are", "GenerativeAdversarialNetwork")
without("sets that are frequent overlap, and have no law of the baskets between them", "Apriori")
without("coordinates in a space of features have no density of the rows", "KernelPCA")
without("its ratings are a stationary law, and not fitted by the likelihood of the games", "MarkovRanker")
without("it was fitted to mistakes, and not to a likelihood", "StructuralRiskMinimizer", "RidgeClassifier", "RidgeClassifierCV")
without(
    "it was fitted to rewards, and not to a likelihood",
    "QLearning",
    "Reinforce",
    "ReinforceClassifier",
    "TDLambda",
    "TDNetwork",
)
without("its targets share a penalty, and what that leaves of the parameters is not known here", "MultiTaskLasso")
without("its targets share a penalty, and what that leaves of the parameters is not known here", "MultiTaskElasticNet")
