package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/kube"
	"gardener.cloud/gardener/pkg/managedresource"
)

const (
	// ShootManagedResource is the name of the ManagedResource with the webhooks of the extension that is responsible for the infrastructure of a shoot.
	ShootManagedResource = "extension-controlplane-shoot-webhooks"
	// shootSuffix is what the name of a configuration in a shoot ends with.
	shootSuffix = "-shoot"
	// shootTimeout limits the writes for one shoot.
	shootTimeout = time.Minute
	// deletionRecheck is how often it is checked whether a ManagedResource that is being deleted can be created again. Its deletion is not watched.
	deletionRecheck = 30 * time.Second
)

// Shoots are webhooks for objects in shoots. The kube-apiservers of shoots run in the seed, and connect to them by a URL. A request in a shoot never fails
// because a webhook does not respond.
type Shoots struct {
	// Webhooks are registered in each shoot.
	Webhooks []Webhook
	// Port is where they are served. It must be another one than Options.Port if there are webhooks for the cluster of the manager: owners of a shoot can have
	// its kube-apiserver call any URL, and must not get answers that are for the seed. Zero means Options.Port.
	Port int
	// ServicePort is their port of the Service, or in the URL. Zero means that of Options.
	ServicePort int32
	// Selects says which shoots get them, such as ProviderType("example").
	Selects func(*extension.Cluster) bool
	// ManagedResource is the name of the ManagedResource in the control plane namespace of each shoot. Empty means ShootManagedResource. Extensions that
	// are not responsible for infrastructures need a name of their own.
	ManagedResource string
}

// ProviderType selects the shoots with an infrastructure of a type.
func ProviderType(typ string) func(*extension.Cluster) bool {
	return func(c *extension.Cluster) bool { return c.Shoot.Spec.Provider.Type == typ }
}

// ExtensionType selects the shoots that have an extension of a type in their spec. Selections by the seed or by defaults are not in it.
func ExtensionType(typ string) func(*extension.Cluster) bool {
	return func(c *extension.Cluster) bool {
		for _, e := range c.Shoot.Spec.Extensions {
			if e.Type == typ {
				return e.Disabled == nil || !*e.Disabled
			}
		}
		return false
	}
}

// shootRegistrar writes the ManagedResources with the webhooks of shoots: it reads Clusters and ManagedResources, and writes these and their Secrets.
type shootRegistrar struct{ *keeper }

// addShoots adds the controller for the webhooks of shoots.
func addShoots(mgr manager.Manager, k *keeper) error {
	if len(k.Shoots.Webhooks) == 0 || k.Shoots.Selects == nil {
		return errors.New("webhooks of shoots need at least one webhook, and a selection of shoots")
	}
	if k.Shoots.ManagedResource == "" {
		k.Shoots.ManagedResource = ShootManagedResource
	}
	r := &shootRegistrar{k}
	changed := make(chan event.GenericEvent, 1)
	k.changed = changed
	return builder.ControllerManagedBy(mgr).Named("shoot-webhooks-"+k.Name).
		For(&extensionsv1alpha1.Cluster{}, builder.WithPredicates(predicate.Funcs{DeleteFunc: func(event.DeleteEvent) bool { return false }})).
		WatchesRawSource(source.Channel(changed, handler.EnqueueRequestsFromMapFunc(r.all))).
		Complete(r)
}

// all returns all shoots: the CA bundle has changed.
func (r *shootRegistrar) all(ctx context.Context, _ client.Object) []reconcile.Request {
	clusters := &extensionsv1alpha1.ClusterList{}
	if err := r.client.List(ctx, clusters); err != nil {
		logf.FromContext(ctx).Error(err, "Listing the shoots that have webhooks")
		return nil
	}
	requests := make([]reconcile.Request, 0, len(clusters.Items))
	for i := range clusters.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&clusters.Items[i])})
	}
	return requests
}

// Reconcile writes the ManagedResource of one shoot, or deletes it if the shoot is no longer selected.
func (r *shootRegistrar) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, shootTimeout)
	defer cancel()
	cluster, err := extension.ReadCluster(ctx, r.client, req.Name)
	if err != nil || !stays(cluster) {
		return reconcile.Result{}, err
	}
	if !r.Shoots.Selects(cluster) {
		return reconcile.Result{}, r.unregister(ctx, req.Name)
	}
	bundle := r.bundle.Load()
	if bundle == nil { // the keeper requeues it as soon as there is one
		return reconcile.Result{}, nil
	}
	objects, err := ShootObjects(r.Options, req.Name, *bundle)
	if err != nil {
		return reconcile.Result{}, err
	}
	for _, object := range objects {
		applied, err := kube.ApplyOne(ctx, r.client, r.Name, object)
		if err != nil {
			return reconcile.Result{}, fmt.Errorf("register webhooks for shoot %q: %w", req.Name, err)
		}
		if applied.GetDeletionTimestamp() != nil { // the shoot was not selected before
			return reconcile.Result{RequeueAfter: deletionRecheck}, nil
		}
	}
	return reconcile.Result{}, nil
}

// stays says whether the control plane of a shoot stays here. When it is deleted or migrates, the gardenlet deletes its ManagedResources, which must not
// come back.
func stays(cluster *extension.Cluster) bool {
	if cluster == nil || cluster.Shoot == nil || cluster.Shoot.DeletionTimestamp != nil {
		return false
	}
	last := cluster.Shoot.Status.LastOperation
	return last == nil || last.Type != corev1beta1.LastOperationTypeMigrate
}

// unregister deletes the ManagedResource of a shoot, if it is of this extension: those for other infrastructures have one of the same name. Its fields say
// so, which caches leave out.
func (r *shootRegistrar) unregister(ctx context.Context, namespace string) error {
	mr := &resourcesv1alpha1.ManagedResource{}
	err := r.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: r.Shoots.ManagedResource}, mr)
	own := slices.ContainsFunc(mr.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == r.Name && entry.Operation == metav1.ManagedFieldsOperationApply
	})
	if err == nil && own && mr.DeletionTimestamp == nil {
		err = r.client.Delete(ctx, mr, client.Preconditions{UID: &mr.UID})
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the webhooks of shoot %q, which is no longer selected: %w", namespace, err)
	}
	return nil
}

// ShootObjects renders the ManagedResource for a shoot, with its Secret.
func ShootObjects(o Options, namespace string, caBundle []byte) ([]client.Object, error) {
	webhooks := make([]Webhook, 0, len(o.Shoots.Webhooks))
	for _, w := range o.Shoots.Webhooks {
		w.IgnoreFailure = true
		webhooks = append(webhooks, w)
	}
	mutating, validating := configurations(o, shootSuffix, webhooks, o.byURL(caBundle, o.Shoots.ServicePort))
	return managedresource.Objects(clientgoscheme.Scheme, managedresource.Values{
		Namespace: namespace, Name: o.Shoots.ManagedResource,
		// They are deleted with the ManagedResource, not by the cleanup of the shoot.
		InjectLabels: map[string]string{constants.ShootNoCleanup: "true"},
	}, present(mutating, validating)...)
}

// present returns the configurations that have webhooks.
func present(mutating *admissionregistrationv1.MutatingWebhookConfiguration, validating *admissionregistrationv1.ValidatingWebhookConfiguration) []client.Object {
	var objects []client.Object
	if len(mutating.Webhooks) > 0 {
		objects = append(objects, mutating)
	}
	if len(validating.Webhooks) > 0 {
		objects = append(objects, validating)
	}
	return objects
}
