package builder_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/validation/core"
	"gardener.cloud/gardener/test/builder"
)

func TestObjectsAreValid(t *testing.T) {
	shoots := map[string]*corev1beta1.Shoot{
		"workerless":       builder.Shoot("a"),
		"two worker pools": builder.Shoot("a", builder.Workers(2)),
		"all changes":      builder.Shoot("a", builder.In("garden-other"), builder.Workers(1), builder.On("seed"), builder.Confirmed, builder.Window),
	}
	for name, shoot := range shoots {
		t.Run("Shoot, "+name, func(t *testing.T) {
			shoot.ResourceVersion = "1"
			corev1beta1.DefaultShoot(shoot)
			valid(t, core.ValidateShoot(shoot, core.Options{}))
		})
	}
	t.Run("Seed", func(t *testing.T) {
		seed := builder.Seed("a")
		seed.ResourceVersion = "1"
		corev1beta1.DefaultSeed(seed)
		valid(t, core.ValidateSeed(seed))
	})
	for name, profile := range map[string]*corev1beta1.CloudProfile{
		"with its versions": builder.CloudProfile("a"),
		"other versions":    builder.CloudProfile("a", builder.Versions("1.36.0")),
	} {
		t.Run("CloudProfile, "+name, func(t *testing.T) {
			profile.ResourceVersion = "1"
			corev1beta1.DefaultCloudProfile(profile)
			valid(t, core.ValidateCloudProfile(profile, time.Now(), core.Options{}))
		})
	}
}

func valid(t *testing.T, errs field.ErrorList) {
	t.Helper()
	for _, err := range errs {
		t.Error(err)
	}
}
