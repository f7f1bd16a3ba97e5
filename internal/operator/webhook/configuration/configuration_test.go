package configuration

import (
	"testing"

	"gardener.cloud/gardener/test/golden"
)

func TestObjects(t *testing.T) {
	for name, v := range map[string]Values{
		"service": {CABundle: []byte("ca")},
		"url":     {Host: "10.0.0.1:2750", CABundle: []byte("ca")},
	} {
		t.Run(name, func(t *testing.T) { golden.Objects(t, name+".yaml", Objects(v)) })
	}
}
