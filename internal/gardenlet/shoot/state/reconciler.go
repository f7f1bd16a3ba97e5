package state

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/secrets"
)

// passTimeout limits a pass, which reads all Secrets and extension resources of one control plane.
const passTimeout = 2 * time.Minute

type reconciler struct {
	Values
	gardenCache, seedCache client.Client
}

// Reconcile saves the state of one Shoot when it is due, and deletes it with the Shoot.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	shoot := &corev1beta1.Shoot{}
	if err := r.gardenCache.Get(ctx, req.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if ptr.Deref(shoot.Status.SeedName, "") != r.SeedName {
		return reconcile.Result{}, nil // the state is saved by the gardenlet of its seed
	}
	if shoot.DeletionTimestamp != nil {
		return kube.Result(r.deleteState(ctx, req))
	}
	if !saveable(shoot) {
		return reconcile.Result{}, nil // the watch triggers when it is
	}
	managed, err := r.seedIsManaged(ctx)
	if err != nil || managed {
		return reconcile.Result{}, err
	}
	saved := &corev1beta1.ShootState{}
	if err := r.GardenAPI.Get(ctx, req.NamespacedName, saved); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("read ShootState: %w", err)
	}
	period, now := r.Config.SyncPeriod.Duration, r.Clock.Now()
	if wait := nextSave(shoot, saved, period, now).Sub(now); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if err := r.save(ctx, shoot); err != nil {
		return kube.Result(err)
	}
	return reconcile.Result{RequeueAfter: period * 9 / 10}, nil // nextSave decides then whether it is due
}

// seedIsManaged is whether the seed is a shoot itself: then the state of its control planes is in the backup of its etcd.
func (r *reconciler) seedIsManaged(ctx context.Context) (bool, error) {
	err := r.GardenAPI.Get(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: r.SeedName}, &seedmanagementv1alpha1.ManagedSeed{})
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), meta.IsNoMatchError(err):
		return false, nil // a gardenlet may read a ManagedSeed that is its own, and thus none if there is none
	}
	return false, fmt.Errorf("read ManagedSeed %q: %w", r.SeedName, err)
}

// deleteState deletes the ShootState of a deleted Shoot.
func (r *reconciler) deleteState(ctx context.Context, req reconcile.Request) error {
	saved := &corev1beta1.ShootState{}
	if err := r.GardenAPI.Get(ctx, req.NamespacedName, saved); err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := kube.PatchMetadata(ctx, r.gardenCache, saved, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.ConfirmationDeletion, "true")
	}); err != nil {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(r.gardenCache.Delete(ctx, saved))
}

// save writes the state of a control plane to the garden.
func (r *reconciler) save(ctx context.Context, shoot *corev1beta1.Shoot) error {
	spec, err := r.stateOf(ctx, shoot.Status.TechnicalID)
	if err != nil {
		return err
	}
	logf.FromContext(ctx).V(1).Info("Saving state", "secrets", len(spec.Gardener), "extensions", len(spec.Extensions), "resources", len(spec.Resources))
	saved := &corev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: shoot.Name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.GardenAPI, saved, func() error {
		metav1.SetMetaDataAnnotation(&saved.ObjectMeta, constants.GardenerTimestamp, r.Clock.Now().UTC().Format(time.RFC3339Nano))
		// Data of other types belongs to other controllers, such as that of machines.
		spec.Gardener = append(spec.Gardener, slices.DeleteFunc(saved.Spec.Gardener, func(d corev1beta1.GardenerResourceData) bool {
			return d.Type == constants.DataTypeSecret
		})...)
		saved.Spec = *spec
		return nil
	}); err != nil {
		return fmt.Errorf("write ShootState: %w", err)
	}
	return nil
}

// stateOf reads the state of a control plane.
func (r *reconciler) stateOf(ctx context.Context, namespace string) (*corev1beta1.ShootStateSpec, error) {
	spec, list := &corev1beta1.ShootStateSpec{}, &corev1.SecretList{}
	if err := r.SeedAPI.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{
		secrets.LabelKeyManagedBy: secrets.LabelValueSecretsManager, secrets.LabelKeyPersist: "true",
	}); err != nil {
		return nil, fmt.Errorf("list secrets: %w", err)
	}
	var err error
	if spec.Gardener, err = secretData(list.Items); err != nil {
		return nil, err
	}
	for kind, objects := range map[string]client.ObjectList{
		"ContainerRuntime": &extensionsv1alpha1.ContainerRuntimeList{}, "ControlPlane": &extensionsv1alpha1.ControlPlaneList{},
		"DNSRecord": &extensionsv1alpha1.DNSRecordList{}, "Extension": &extensionsv1alpha1.ExtensionList{},
		"Infrastructure": &extensionsv1alpha1.InfrastructureList{}, "Network": &extensionsv1alpha1.NetworkList{},
		"OperatingSystemConfig": &extensionsv1alpha1.OperatingSystemConfigList{}, "Worker": &extensionsv1alpha1.WorkerList{},
	} {
		if err := r.seedCache.List(ctx, objects, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("list kind %s: %w", kind, err)
		}
		if err := meta.EachListItem(objects, func(item runtime.Object) error {
			if object, ok := item.(extensionsv1alpha1.Object); ok {
				if state, ok := extensionState(kind, object); ok {
					spec.Extensions = append(spec.Extensions, state)
				}
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	sortStates(spec.Extensions)
	spec.Resources, err = r.resources(ctx, namespace, spec.Extensions)
	return spec, err
}

// resources reads the objects that extension resources refer to, each once.
func (r *reconciler) resources(ctx context.Context, namespace string, states []corev1beta1.ExtensionResourceState) ([]corev1beta1.ResourceData, error) {
	var list []corev1beta1.ResourceData
	read := map[autoscalingv1.CrossVersionObjectReference]bool{}
	for _, state := range states {
		for _, resource := range state.Resources {
			ref := resource.ResourceRef
			if read[ref] {
				continue
			}
			read[ref] = true
			object := &unstructured.Unstructured{}
			object.SetAPIVersion(ref.APIVersion)
			object.SetKind(ref.Kind)
			if err := r.SeedAPI.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, object); err != nil {
				return nil, fmt.Errorf("read %s %q, which %s %q refers to: %w", ref.Kind, ref.Name, state.Kind, *state.Name, err)
			}
			content := object.DeepCopy()
			// These fields are set by the API server, or name objects that the next seed does not have.
			for _, field := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "ownerReferences", "finalizers"} {
				unstructured.RemoveNestedField(content.Object, "metadata", field)
			}
			unstructured.RemoveNestedField(content.Object, "status")
			data, err := json.Marshal(content.Object)
			if err != nil {
				return nil, fmt.Errorf("encode %s %q", ref.Kind, ref.Name) // the error itself may quote its data
			}
			list = append(list, corev1beta1.ResourceData{CrossVersionObjectReference: ref, Data: runtime.RawExtension{Raw: data}})
		}
	}
	slices.SortFunc(list, func(a, b corev1beta1.ResourceData) int { return strings.Compare(a.Kind+"/"+a.Name, b.Kind+"/"+b.Name) })
	return list, nil
}
