package core_test

import (
	"gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/validation/core"
	"gardener.cloud/gardener/test/builder"
)

var options = core.Options{CloudProfileCapabilities: true}

// shoot is a valid Shoot after defaulting.
func shoot() *v1beta1.Shoot {
	s := builder.Shoot("crazy-botany", builder.Workers(1))
	s.ResourceVersion = "1"
	v1beta1.DefaultShoot(s)
	return s
}

// seed is a valid Seed after defaulting.
func seed() *v1beta1.Seed {
	s := builder.Seed("local")
	s.ResourceVersion = "1"
	v1beta1.DefaultSeed(s)
	return s
}

// cloudProfile is a valid CloudProfile after defaulting.
func cloudProfile() *v1beta1.CloudProfile {
	p := builder.CloudProfile("local")
	p.ResourceVersion = "1"
	v1beta1.DefaultCloudProfile(p)
	return p
}
