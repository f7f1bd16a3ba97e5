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

// patience is how long a process that starts waits for API servers, which is less than what liveness probes allow.
const patience = 20 * time.Second

// lookAgain is when to ask an API server again that does not answer. Nothing can be watched there.
var lookAgain = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 1.5, Cap: 2 * time.Second, Steps: 1000, Jitter: 0.1}

// Mapper returns what makes the mapper of a manager or a cluster. It waits a while, from now on, for API servers that are away: a process
// that lost the leadership since they were restarted would end again and again, with longer and longer breaks. Kinds that the process
// works with may come too: an API server that has just started does not know those of CustomResourceDefinitions and of API servers behind it.
func Mapper(ctx context.Context, kinds ...AddToScheme) func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	return func(config *rest.Config, client *http.Client) (meta.RESTMapper, error) {
		scheme := k8sruntime.NewScheme()
		var errs []error
		for _, add := range kinds {
			errs = append(errs, add(scheme))
		}
		mapper, err := apiutil.NewDynamicRESTMapper(config, client)
		return patientMapper{RESTMapper: mapper, ctx: ctx, until: time.Now().Add(patience), kinds: scheme}, errors.Join(append(errs, err)...)
	}
}

type patientMapper struct {
	meta.RESTMapper
	ctx   context.Context //nolint:containedctx // the interface has no context, and the process may end meanwhile
	until time.Time
	kinds *k8sruntime.Scheme
}

// RESTMapping finds a resource. It is what informers and clients ask for.
func (m patientMapper) RESTMapping(kind schema.GroupKind, versions ...string) (mapping *meta.RESTMapping, err error) {
	ctx, cancel := context.WithDeadline(m.ctx, m.until)
	defer cancel()
	if mapping, err = m.RESTMapper.RESTMapping(kind, versions...); err == nil || !m.comes(kind, err) || ctx.Err() != nil {
		return mapping, err
	}
	_ = wait.ExponentialBackoffWithContext(ctx, lookAgain, func(context.Context) (bool, error) { // the error of the last try says more
		mapping, err = m.RESTMapper.RESTMapping(kind, versions...)
		return err == nil || !m.comes(kind, err), nil
	})
	return mapping, err
}

// comes tells whether what is missing may be there soon.
func (m patientMapper) comes(kind schema.GroupKind, err error) bool {
	var unreachable net.Error
	return apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		errors.As(err, &unreachable) || meta.IsNoMatchError(err) && len(m.kinds.VersionsForGroupKind(kind)) > 0
}
