module gardener.cloud/gardener/distribution/pause

go 1.26.0
