module gardener.cloud/gardener

go 1.26.0
