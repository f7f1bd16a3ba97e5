package process

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// discoveryTimeout is how long a starting process waits for API servers, which is less than liveness probes allow.
const discoveryTimeout = 20 * time.Second

// discoveryBackoff is the backoff of discovery, which cannot be watched.
var discoveryBackoff = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 1.5, Cap: 2 * time.Second, Steps: 1000, Jitter: 0.1}

// Mapper returns a function for the REST mapper of a manager or a cluster. The mapper waits for some time, from now on, for API servers that
// are not available: a process that lost the leadership because they restart would otherwise crash repeatedly, with growing backoff. It also
// waits for the given kinds: an API server that has just started does not have those of CustomResourceDefinitions and aggregated API servers.
func Mapper(ctx context.Context, kinds ...AddToScheme) func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	return func(config *rest.Config, client *http.Client) (meta.RESTMapper, error) {
		scheme := k8sruntime.NewScheme()
		var errs []error
		for _, add := range kinds {
			errs = append(errs, add(scheme))
		}
		mapper, err := apiutil.NewDynamicRESTMapper(config, client)
		return waitingMapper{RESTMapper: mapper, ctx: ctx, until: time.Now().Add(discoveryTimeout), kinds: scheme}, errors.Join(append(errs, err)...)
	}
}

type waitingMapper struct {
	meta.RESTMapper
	ctx   context.Context //nolint:containedctx // the interface has no context, and the process may end meanwhile
	until time.Time
	kinds *k8sruntime.Scheme
}

// RESTMapping implements meta.RESTMapper. Informers and clients call it.
func (m waitingMapper) RESTMapping(kind schema.GroupKind, versions ...string) (mapping *meta.RESTMapping, err error) {
	ctx, cancel := context.WithDeadline(m.ctx, m.until)
	defer cancel()
	if mapping, err = m.RESTMapper.RESTMapping(kind, versions...); err == nil || !m.temporary(kind, err) || ctx.Err() != nil {
		return mapping, err
	}
	_ = wait.ExponentialBackoffWithContext(ctx, discoveryBackoff, func(context.Context) (bool, error) { // the error of the last attempt is more specific
		mapping, err = m.RESTMapper.RESTMapping(kind, versions...)
		return err == nil || !m.temporary(kind, err), nil
	})
	return mapping, err
}

// temporary says whether an error may pass soon.
func (m waitingMapper) temporary(kind schema.GroupKind, err error) bool {
	var unreachable net.Error
	return apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		errors.As(err, &unreachable) || meta.IsNoMatchError(err) && len(m.kinds.VersionsForGroupKind(kind)) > 0
}
