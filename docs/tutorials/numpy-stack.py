# %% [markdown]
# # Title
# Summary.

# %%
import matplotlib.pyplot as plt

plt.plot([1, 2])
print(1)
