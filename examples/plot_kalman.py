"""
The level of a river, with its doubt
====================================

Every year from 1871 to 1970 the flow of the Nile at Aswan was measured, in units of 10⁸ cubic meters. The flow of a year is a
level that changes slowly, plus what that year brought. How much of each is there, and what was the level?
"""

# %%
# Two noises
# ----------
# The level walks at random, and the measurement scatters around it: a state-space model with one state. EM finds the two
# variances; a wide initial law says that nothing was known before. Durbin and Koopman's book has 1469 and 15099.

import matplotlib.pyplot as plt
import numpy as np

from lemmata.plot import StateSpaceDisplay
from lemmata.state_space import LinearGaussianModel

flow = """
1120 1160 963 1210 1160 1160 813 1230 1370 1140 995 935 1110 994 1020 960 1180 799 958 1140 1100 1210 1150 1250 1260
1220 1030 1100 774 840 874 694 940 833 701 916 692 1020 1050 969 831 726 456 824 702 1120 1100 832 764 821 768 845
864 862 698 845 744 796 1040 759 781 865 845 944 984 897 822 1010 771 676 649 846 812 742 801 1040 860 874 848 890
744 749 838 1050 918 986 797 923 975 815 1020 906 901 1170 912 746 919 718 714 740
"""
years = np.arange(1871, 1971)
x = np.array(flow.split(), dtype=float)
model = LinearGaussianModel(1.0, 1.0, 1000.0, 10000.0, initial_mean=1000.0, initial_covariance=1e7).fit(x)
step, year = model.transition_covariance_[0, 0], model.observation_covariance_[0, 0]
print(f"variance of the level's steps {step:.0f}, of a year {year:.0f}")

# %%
# The filter knows the past, the smoother the future as well: its band is narrower, and it sees the level fall around 1899, when
# the first dam at Aswan was being built, without the filter's delay. The forecast is of what will be measured, so it has the
# noise of a year on top of the doubt about the level.

display = StateSpaceDisplay.from_estimator(
    model, x, kinds=("filtered", "smoothed"), n_steps=15, time=np.arange(1871, 1986), name="The Nile at Aswan"
)
display.ax_.set(xlabel="year", ylabel="flow")
plt.show()

# %%
# The certificate solves for all hundred levels at once, with no filter, and finds the same; and the likelihood is stationary in
# the two variances.

model.certify(x)

# %%
# Years that nobody measured
# --------------------------
# Two decades go missing. Nothing has to be filled in: the band opens where nothing was seen, and closes again.

holes = x.copy()
holes[20:40] = holes[60:80] = np.nan
display = StateSpaceDisplay.from_estimator(model, holes, time=years, name="Two gaps of twenty years")
inside = np.isnan(holes)
display.ax_.plot(years[inside], x[inside], "o", ms=3.5, mew=1, mfc="none", color="0.55")
display.ax_.set(xlabel="year", ylabel="flow")
plt.show()

# %%
# A level and a slope
# -------------------
# With a second state the level has a slope, which walks in turn: a local linear trend. EM takes the variance of the slope's
# steps to zero, and the certificate agrees that it should not rise: this series has no use for a slope that changes.

trend = LinearGaussianModel(
    [[1.0, 1.0], [0.0, 1.0]],
    [[1.0, 0.0]],
    np.diag([1000.0, 10.0]),
    10000.0,
    initial_mean=[1000.0, 0.0],
    initial_covariance=np.diag([1e7, 1e3]),
    fixed={
        "transition": True,
        "observation": True,
        "transition_covariance": ~np.eye(2, dtype=bool),
        "initial_mean": True,
        "initial_covariance": True,
    },
).fit(x)
steps = np.diagonal(trend.transition_covariance_)
print(f"variances of the steps of level and slope: {steps[0]:.0f} and {steps[1]:.1g}")
print(f"log-likelihood {trend.log_likelihood_:.2f}, of the level alone {model.log_likelihood_:.2f}")

# %%
trend.certify(x)

# %%
# Paths, not only bands
# ---------------------
# A band says where each year's level may be, not how years go together. Draws from the posterior of the whole path do.

_, ax = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
ax.plot(years, model.simulate_states(x, 20, random_state=0)[:, :, 0].T, lw=0.7, alpha=0.6, color="#2a9d6f")
ax.plot(years, x, "o", ms=3.5, mew=0, color="0.55")
ax.set(xlabel="year", ylabel="flow", title="Twenty levels that may have been")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# sphinx_gallery_thumbnail_number = 1
