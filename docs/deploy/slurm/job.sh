#!/bin/bash
#SBATCH --job-name=isotherm-profile
#SBATCH --ntasks=2
# Records every rank of a program and merges the profiles into one: sbatch job.sh ./app ARGUMENTS
# With Open MPI's own starter the rank is in OMPI_COMM_WORLD_RANK instead of SLURM_PROCID.
set -euo pipefail

run=${SLURM_JOB_ID:-run}
# The rank is known only to the process that srun starts.
srun bash -c 'exec isotherm record -o "$0.$SLURM_PROCID.iso" -- "$@"' "$run" "$@"
isotherm merge -o "$run.iso" "$run".[0-9]*.iso
isotherm report "$run.iso"
