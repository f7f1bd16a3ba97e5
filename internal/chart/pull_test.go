package chart

import (
	"testing"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
)

func TestParse(t *testing.T) {
	const digest = "sha256:0123456789012345678901234567890123456789012345678901234567890123"
	for want, repository := range map[string]gardencorev1.OCIRepository{
		"registry.example/chart-a:1":         {Ref: new("registry.example/chart-a:1")},
		"registry.example/chart-b:1":         {Repository: new("oci://registry.example/chart-b"), Tag: new("1")},
		"registry.example/chart-c@" + digest: {Repository: new("registry.example/chart-c"), Tag: new("1"), Digest: new(digest)},
		"registry.example/chart-d:latest":    {Repository: new("registry.example/chart-d")},
	} {
		if got, err := parse(&repository); err != nil || got.Name() != want {
			t.Errorf("parse() = %v, %v, want %s", got, err, want)
		}
	}
	if _, err := parse(&gardencorev1.OCIRepository{}); err == nil {
		t.Error("parse() accepts an empty reference")
	}
}
