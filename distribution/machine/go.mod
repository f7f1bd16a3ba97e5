module gardener.cloud/gardener/distribution/machine

go 1.26.0
