package initializer_test

import (
	"testing"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
)

type plugin struct {
	*admission.Handler
	initializer.Base
}

// The server starts only if each plugin has what it reads.
func TestBase(t *testing.T) {
	allowed := authorizer.AuthorizerFunc(nil)
	for name, tc := range map[string]struct {
		initialize func(p *plugin)
		complete   bool
	}{
		"all": {func(p *plugin) {
			initializer.New(admissiontest.Broken{}, admissiontest.Broken{}).Initialize(p)
			p.SetAuthorizer(allowed)
		}, true},
		"no authorizer": {func(p *plugin) { initializer.New(admissiontest.Broken{}, admissiontest.Broken{}).Initialize(p) }, false},
		"no reader of the garden": {func(p *plugin) {
			initializer.New(nil, admissiontest.Broken{}).Initialize(p)
			p.SetAuthorizer(allowed)
		}, false},
		"no reader of the kube-apiserver": {func(p *plugin) {
			initializer.New(admissiontest.Broken{}, nil).Initialize(p)
			p.SetAuthorizer(allowed)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &plugin{}
			tc.initialize(p)
			if err := p.ValidateInitialization(); (err == nil) != tc.complete {
				t.Errorf("ValidateInitialization() = %v, want it complete: %t", err, tc.complete)
			}
		})
	}
}
