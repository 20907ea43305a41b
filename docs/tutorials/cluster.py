# %% [markdown]
# # On a cluster
#
# Tiles of a field can run on any Dask cluster: SLURM, PBS, Kubernetes, or machines that you start by hand.
#
# This page starts a cluster of one worker on this machine. On a real cluster, only the first cell changes.
#
# ## 1. A cluster
#
# Give each worker one thread. Frames and output must lie on storage that all workers share. Workers need the same version of
# fouriscope; it is checked before the first tile.

# %%
from distributed import Client, LocalCluster

cluster = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0")
client = Client(cluster)

# %% [markdown]
# With SLURM, [dask-jobqueue](https://jobqueue.dask.org) replaces `LocalCluster`:
# `SLURMCluster(cores=32, processes=32, memory="64GB", walltime="02:00:00")`, then `cluster.scale(jobs=10)`.
#
# ## 2. The field

# %%
# !fouriscope simulate data --frame 160 --radius 3 --field

# %%
import fouriscope as fs

result = fs.reconstruct_field("data/config.toml", "field", client=client, tile=96, iterations=30)
print("failed tiles:", result.failed or "none")

# %%
client.close()
cluster.close()

# %% [markdown]
# ## From a terminal
#
# `--scheduler` takes the address or the scheduler file of a running cluster:
#
#     dask scheduler --scheduler-file /shared/scheduler.json
#     dask worker --scheduler-file /shared/scheduler.json --nworkers 32 --nthreads 1
#     fouriscope field /shared/acquisition.toml --scheduler /shared/scheduler.json
#
# !!! warning "Who can run code there"
#
#     A Dask cluster runs what any client sends. Use `tcp://` only in a network where you trust everyone, and `tls://` everywhere
#     else. [How](../field.md#on-a-cluster).
