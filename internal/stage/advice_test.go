package stage

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gardener.cloud/gardener/pkg/errorcode"
)

// The errors are those of a kube-apiserver.
func TestErrorsOfWebhooksSayWhatToDo(t *testing.T) {
	call := errors.New(`failed calling webhook "controlplane.local.extensions.gardener.cloud": failed to call webhook: Post ` +
		`"https://provider-local-webhook.extension-provider-local.svc:443/controlplane?timeout=10s": dial tcp 10.2.0.7:443: connect: connection refused`)
	other := errors.New(`failed calling webhook "high-availability-config.resources.gardener.cloud": failed to call webhook: EOF`)
	for name, tc := range map[string]struct {
		err    error
		advice bool
	}{
		"that of an extension":      {apierrors.NewInternalError(call), true},
		"another one":               {apierrors.NewInternalError(other), false},
		"it has refused the object": {apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "x", call), false},
		"none":                      {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			var wrapped error
			if tc.err != nil {
				wrapped = fmt.Errorf("apply Deployment: %w", tc.err)
			}
			got := Advise(wrapped)
			if !errors.Is(got, wrapped) {
				t.Errorf("error %v is lost: %v", wrapped, got)
			}
			if advice := got != nil && strings.Contains(got.Error(), "the extension with the webhook controlplane.local.extensions.gardener.cloud has to respond"); advice != tc.advice {
				t.Errorf("error is %v", got)
			}
			if codes := errorcode.Of(got); len(codes) > 0 {
				t.Errorf("the owner of the shoot is told to act: %v", codes)
			}
		})
	}
}
