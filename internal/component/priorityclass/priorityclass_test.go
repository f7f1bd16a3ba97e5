package priorityclass

import (
	"slices"
	"testing"

	"gardener.cloud/gardener/test/golden"
)

func TestClasses(t *testing.T) {
	golden.Objects(t, "classes.yaml", slices.Concat(Garden(), Seed(), Shoot()))
}
