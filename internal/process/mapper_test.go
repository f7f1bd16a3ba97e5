package process

import (
	"errors"
	"fmt"
	"net/url"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// failing returns its errors, one after the other, and then succeeds.
type failing struct {
	meta.RESTMapper
	errs []error
}

func (f *failing) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	if len(f.errs) == 0 {
		return &meta.RESTMapping{}, nil
	}
	err := f.errs[0]
	f.errs = f.errs[1:]
	return nil, err
}

func TestMapperWaitsForAPIServers(t *testing.T) {
	version := schema.GroupVersion{Group: "core.gardener.cloud", Version: "v1beta1"}
	away := fmt.Errorf("x: %w", &apiutil.ErrResourceDiscoveryFailed{version: apierrors.NewServiceUnavailable("away")})
	refused := &url.Error{Op: "Get", Err: syscall.ECONNREFUSED}
	absent := fmt.Errorf("x: %w", &apiutil.ErrResourceDiscoveryFailed{version: &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Seed"}}})
	broken := errors.New("broken")
	seed := schema.GroupKind{Group: "core.gardener.cloud", Kind: "Seed"}
	known := runtime.NewScheme()
	known.AddKnownTypeWithName(seed.WithVersion("v1beta1"), &metav1.PartialObjectMetadata{})
	for name, tc := range map[string]struct {
		errs  []error
		kind  schema.GroupKind
		later bool
		want  error
	}{
		"there":                             {},
		"an API server that restarts":       {errs: []error{refused, away}},
		"an unknown kind":                   {errs: []error{absent}, want: absent},
		"a kind that is registered later":   {errs: []error{away, absent}, kind: seed},
		"after the timeout":                 {errs: []error{refused}, kind: seed, later: true, want: refused},
		"a permanent error":                 {errs: []error{broken}, want: broken},
		"a permanent error after a restart": {errs: []error{refused, broken}, want: broken},
	} {
		t.Run(name, func(t *testing.T) {
			until := time.Now().Add(discoveryTimeout)
			if tc.later {
				until = time.Now()
			}
			mapping, err := waitingMapper{RESTMapper: &failing{errs: tc.errs}, ctx: t.Context(), until: until, kinds: known}.RESTMapping(tc.kind)
			if !errors.Is(err, tc.want) || (mapping == nil) != (tc.want != nil) {
				t.Errorf("RESTMapping() is %v, %v", mapping, err)
			}
		})
	}
}
