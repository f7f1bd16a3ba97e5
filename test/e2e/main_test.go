//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"testing"

	product "gardener.cloud/gardener/landscape"
)

func TestMain(m *testing.M) {
	if err := product.BypassProxy(os.Getenv, os.Setenv); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
