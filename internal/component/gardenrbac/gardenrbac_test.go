package gardenrbac

import (
	"testing"

	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	golden.Objects(t, "objects.yaml", Objects(Values{}))
}

// With the seed authorizer, no role allows a gardenlet to access the objects of other seeds.
func TestSeedAuthorizer(t *testing.T) {
	for _, object := range Objects(Values{SeedAuthorizer: true}) {
		if object.GetName() == "gardener.cloud:system:seeds" {
			t.Errorf("%T %s is deployed", object, object.GetName())
		}
	}
}
