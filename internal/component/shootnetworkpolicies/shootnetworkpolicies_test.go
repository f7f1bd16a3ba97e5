package shootnetworkpolicies

import (
	"testing"

	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) { golden.Objects(t, "objects.yaml", Objects()) }
