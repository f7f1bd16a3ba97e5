package registrar

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/operator/group"
	"gardener.cloud/gardener/internal/operator/virtualcluster"
)

type reconciler struct {
	Values
	runtimeCache client.Reader
	// access is that of the virtual group. Only one request is reconciled at a time.
	access *virtualcluster.Access
}

// keys are those of the Runs of the groups. They are empty for groups that do not run.
type keys struct{ garden, resources, virtual string }

// decide returns what runs for the Gardens, CustomResourceDefinitions of which all that are needed are established or not, and a key of the
// access to the virtual cluster, which is empty without access. Controllers stay until the Garden is gone: its deletion needs them.
func decide(gardens []operatorv1alpha1.Garden, defined bool, access string) keys {
	if len(gardens) == 0 {
		return keys{}
	}
	k := keys{garden: string(gardens[0].UID)}
	if defined {
		k.resources = k.garden
	}
	if access != "" {
		k.virtual = k.garden + "/" + access
	}
	return k
}

// Reconcile sets what the groups run.
func (r *reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	gardens := &operatorv1alpha1.GardenList{}
	if err := r.runtimeCache.List(ctx, gardens); err != nil {
		return reconcile.Result{}, fmt.Errorf("list Gardens: %w", err)
	}
	defined, err := r.defined(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	access := ""
	if err := r.readAccess(ctx); err != nil {
		return reconcile.Result{}, err
	}
	if r.access != nil {
		access = r.access.Key
	}
	k := decide(gardens.Items, defined, access)
	r.Garden.Set(run(k.garden, func(ctx context.Context) (manager.Manager, error) { return r.manager(ctx, "garden", r.AddGarden) }))
	r.Resources.Set(run(k.resources, func(ctx context.Context) (manager.Manager, error) { return r.manager(ctx, "resources", r.AddResources) }))
	current := r.access
	r.Virtual.Set(run(k.virtual, func(ctx context.Context) (manager.Manager, error) { return r.virtual(ctx, current) }))
	return reconcile.Result{}, nil
}

func run(key string, newManager func(context.Context) (manager.Manager, error)) *group.Run {
	if key == "" {
		return nil
	}
	return &group.Run{Key: key, New: newManager}
}

// defined reports whether all Definitions are established.
func (r *reconciler) defined(ctx context.Context) (bool, error) {
	for _, name := range r.Definitions {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := r.runtimeCache.Get(ctx, client.ObjectKey{Name: name}, definition); apierrors.IsNotFound(err) {
			return false, nil
		} else if err != nil {
			return false, fmt.Errorf("read CustomResourceDefinition %q: %w", name, err)
		}
		if !established(definition) {
			return false, nil
		}
	}
	return true, nil
}

// readAccess takes over a new token, or a new access to the virtual cluster.
func (r *reconciler) readAccess(ctx context.Context) error {
	secret := &corev1.Secret{}
	if err := r.runtimeCache.Get(ctx, virtualcluster.SecretKey, secret); apierrors.IsNotFound(err) {
		r.access = nil
		return nil
	} else if err != nil {
		return fmt.Errorf("read Secret %q: %w", virtualcluster.SecretKey, err)
	}
	if r.access != nil {
		if renewed, err := r.access.Renew(secret); err == nil && renewed {
			return nil
		}
	}
	var set []func(*rest.Config)
	if r.Connection != nil {
		set = append(set, r.Connection)
	}
	access, err := virtualcluster.Of(secret, set...)
	if errors.Is(err, virtualcluster.ErrNoAccess) {
		logf.FromContext(ctx).V(1).Info("Virtual cluster cannot be used", "reason", err.Error())
		r.access = nil
		return nil
	}
	r.access = access
	return err
}

// manager returns a manager with the controllers of a group.
func (r *reconciler) manager(ctx context.Context, name string, add func(context.Context, manager.Manager) error) (manager.Manager, error) {
	mgr, err := r.NewManager(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("set up manager %q: %w", name, err)
	}
	if err := add(ctx, mgr); err != nil {
		return nil, fmt.Errorf("add controllers of %q: %w", name, err)
	}
	return mgr, nil
}

// virtual returns a manager with the virtual cluster and its controllers.
func (r *reconciler) virtual(ctx context.Context, access *virtualcluster.Access) (manager.Manager, error) {
	return r.manager(ctx, "virtual", func(ctx context.Context, mgr manager.Manager) error {
		virtual, err := r.NewVirtual(ctx, access.Config)
		if err != nil {
			return fmt.Errorf("connect to the virtual cluster: %w", err)
		}
		if err := mgr.Add(virtual); err != nil {
			return err
		}
		return r.AddVirtual(ctx, mgr, virtual)
	})
}
