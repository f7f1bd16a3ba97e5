// Package claim gives Services of type LoadBalancer of a shoot whose nodes are hosts an address, for which it claims one from provider-hosts in the seed.
package claim

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	servicehelpers "k8s.io/cloud-provider/service/helpers"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
)

const (
	// reasonNoAddress and reasonAssigned are the reasons of Events.
	reasonNoAddress, reasonAssigned = "NoAddressLeft", "AddressAssigned"
	// action is what Events are about.
	action = "AssignAddress"
	// workers is how many Services are reconciled at a time.
	workers = 5
	// maxClaims is how many claims a shoot has at most, or a few more, as the cache may lack some. It is twice the addresses that a shoot can have: the
	// users of a shoot create as many Services as they like, and provider-hosts reads the claims of all shoots of the seed.
	maxClaims = 40
	// fullRetry is when a Service without a claim is reconciled again: claims of other Services do not requeue it.
	fullRetry = 5 * time.Minute
)

// errFull is the error of a Service that gets no claim because of maxClaims. It has an Event.
var errFull = errors.New("the shoot has as many AddressClaims as it can have")

// reconciler reads Services of the shoot and AddressClaims of its control plane. It writes claims, and the status and the finalizer of Services.
type reconciler struct {
	seedAPI     client.Reader // not cached: the own last write must be seen
	seedClient  client.Client
	shootClient client.Client
	recorder    events.EventRecorder
	namespace   string
}

// Add adds the controller to a manager of the seed. The namespace is that of the control plane, to which the cache of the manager is limited.
func Add(mgr manager.Manager, shoot cluster.Cluster, namespace string) error {
	r := &reconciler{
		seedAPI: mgr.GetAPIReader(), seedClient: mgr.GetClient(), shootClient: shoot.GetClient(), recorder: shoot.GetEventRecorder("service-addresses"), namespace: namespace,
	}
	c, err := controller.New("service-addresses", mgr, controller.Options{Reconciler: r, MaxConcurrentReconciles: workers})
	if err != nil {
		return err
	}
	services := predicate.NewTypedPredicateFuncs(func(s *corev1.Service) bool { return wanted(s) || servicehelpers.HasLBFinalizer(s) })
	services.UpdateFunc = nil // what was a load balancer may be none any more
	if err := c.Watch(source.Kind(shoot.GetCache(), &corev1.Service{}, &handler.TypedEnqueueRequestForObject[*corev1.Service]{}, services)); err != nil {
		return err
	}
	return c.Watch(source.Kind(mgr.GetCache(), &hostsv1alpha1.AddressClaim{}, handler.TypedEnqueueRequestsFromMapFunc(serviceOf)))
}

// serviceOf returns the Service of a claim.
func serviceOf(_ context.Context, claim *hostsv1alpha1.AddressClaim) []reconcile.Request {
	namespace, name, ok := strings.Cut(claim.Spec.Service, "/")
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}}
}

// wanted says whether a Service is to have an address from here. One with a class has another controller.
func wanted(s *corev1.Service) bool {
	return s.DeletionTimestamp == nil && s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.LoadBalancerClass == nil
}

// Reconcile gives a Service an address, or takes it back.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	service := &corev1.Service{}
	if err := r.shootClient.Get(ctx, req.NamespacedName, service); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	// A Service that was created again with its name has another claim.
	if err := r.release(ctx, req.String(), func(c *hostsv1alpha1.AddressClaim) bool { return wanted(service) && c.Name == nameOf(service) }); err != nil {
		return reconcile.Result{}, err
	}
	var err error
	switch {
	case wanted(service):
		err = r.assign(ctx, service)
	case service.Spec.LoadBalancerClass == nil && servicehelpers.HasLBFinalizer(service):
		err = r.finish(ctx, service)
	}
	if errors.Is(err, errFull) {
		return reconcile.Result{RequeueAfter: fullRetry}, nil
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return reconcile.Result{}, nil // the change brings it back
	}
	return reconcile.Result{}, err
}

// nameOf returns the name of the claim of a Service.
func nameOf(s *corev1.Service) string { return "service-" + string(s.UID) }

// release deletes the claims of a Service, except for those to keep.
func (r *reconciler) release(ctx context.Context, service string, keep func(*hostsv1alpha1.AddressClaim) bool) error {
	claims := &hostsv1alpha1.AddressClaimList{}
	if err := r.seedClient.List(ctx, claims, client.InNamespace(r.namespace)); err != nil { // from the cache, whose events bring the Service back
		return fmt.Errorf("list AddressClaims: %w", err)
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Spec.Service != service || keep(claim) || claim.DeletionTimestamp != nil {
			continue
		}
		logf.FromContext(ctx).Info("Releasing address", "claim", claim.Name, "address", claim.Status.Address)
		if err := r.seedClient.Delete(ctx, claim); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete AddressClaim %q: %w", claim.Name, err)
		}
	}
	return nil
}

// finish lets a Service go, or be of another type.
func (r *reconciler) finish(ctx context.Context, service *corev1.Service) error {
	// First: with its claim, the address may go to another cluster.
	if err := r.setIngress(ctx, service, nil); err != nil {
		return err
	}
	// By its name: the claim may not be in the cache yet.
	claim := &hostsv1alpha1.AddressClaim{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: nameOf(service)}}
	if err := r.seedClient.Delete(ctx, claim); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete AddressClaim %q: %w", claim.Name, err)
	}
	before := service.DeepCopy()
	controllerutil.RemoveFinalizer(service, servicehelpers.LoadBalancerCleanupFinalizer)
	return r.shootClient.Patch(ctx, service, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// assign claims an address, and writes it into the Service when there is one.
func (r *reconciler) assign(ctx context.Context, service *corev1.Service) error {
	before := service.DeepCopy()
	if controllerutil.AddFinalizer(service, servicehelpers.LoadBalancerCleanupFinalizer) { // before what it guards
		if err := r.shootClient.Patch(ctx, service, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return err
		}
	}
	spec := specOf(service)
	if address, err := netip.ParseAddr(spec.Address); spec.Address != "" && (err != nil || address.Zone() != "") {
		r.recorder.Eventf(service, nil, corev1.EventTypeWarning, reasonNoAddress, action, "spec.loadBalancerIP is not an IP address")
		if err := r.setIngress(ctx, service, nil); err != nil {
			return err
		}
		return r.seedClient.Delete(ctx, &hostsv1alpha1.AddressClaim{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: nameOf(service)}})
	}
	claim := &hostsv1alpha1.AddressClaim{}
	err := r.seedAPI.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: nameOf(service)}, claim)
	switch {
	case apierrors.IsNotFound(err):
		claims := &hostsv1alpha1.AddressClaimList{}
		if err := r.seedClient.List(ctx, claims, client.InNamespace(r.namespace)); err != nil {
			return fmt.Errorf("list AddressClaims: %w", err)
		}
		if len(claims.Items) >= maxClaims {
			r.recorder.Eventf(service, nil, corev1.EventTypeWarning, reasonNoAddress, action, "this shoot has %d load balancers, and cannot have more", maxClaims)
			return errFull
		}
		claim = &hostsv1alpha1.AddressClaim{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: nameOf(service)}, Spec: spec}
		if err := r.seedClient.Create(ctx, claim); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("create AddressClaim %q: %w", claim.Name, err)
		}
		return nil // its status brings the Service back
	case err != nil:
		return fmt.Errorf("read AddressClaim %q: %w", nameOf(service), err)
	case claim.Spec != spec: // its deletion brings the Service back
		if err := r.setIngress(ctx, service, nil); err != nil {
			return err
		}
		return r.seedClient.Delete(ctx, claim, client.Preconditions{UID: &claim.UID})
	case claim.Status.Address == "" && claim.Status.Message == "": // new
		return nil
	case claim.Status.Address == "":
		r.recorder.Eventf(service, nil, corev1.EventTypeWarning, reasonNoAddress, action, "%s", claim.Status.Message)
		return r.setIngress(ctx, service, nil)
	}
	return r.setIngress(ctx, service, []corev1.LoadBalancerIngress{{IP: claim.Status.Address, IPMode: new(corev1.LoadBalancerIPModeVIP)}})
}

// specOf returns what a Service claims: an address of its first family.
func specOf(service *corev1.Service) hostsv1alpha1.AddressClaimSpec {
	spec := hostsv1alpha1.AddressClaimSpec{
		Service: service.Namespace + "/" + service.Name, Family: corev1.IPv4Protocol,
		Address: service.Spec.LoadBalancerIP,
	}
	if len(service.Spec.IPFamilies) > 0 {
		spec.Family = service.Spec.IPFamilies[0]
	}
	return spec
}

// setIngress writes the status, if it is another one.
func (r *reconciler) setIngress(ctx context.Context, service *corev1.Service, ingress []corev1.LoadBalancerIngress) error {
	if equality.Semantic.DeepEqual(service.Status.LoadBalancer.Ingress, ingress) {
		return nil
	}
	before := service.DeepCopy()
	service.Status.LoadBalancer.Ingress = ingress
	if err := r.shootClient.Status().Patch(ctx, service, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("write the status of Service %s/%s: %w", service.Namespace, service.Name, err)
	}
	if len(ingress) > 0 {
		r.recorder.Eventf(service, nil, corev1.EventTypeNormal, reasonAssigned, action, "The address is %s", ingress[0].IP)
	}
	return nil
}
