package seedmanagement

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"

	"k8s.io/utils/ptr"

	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
)

// scale serves the number of replicas of ManagedSeedSets.
type scale struct {
	store *kind.Main[seedmanagementv1alpha1.ManagedSeedSet]
}

var (
	_ rest.Patcher                  = &scale{}
	_ rest.GroupVersionKindProvider = &scale{}
)

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (r *scale) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return autoscalingv1.SchemeGroupVersion.WithKind("Scale")
}

// New implements rest.Storage.
func (r *scale) New() runtime.Object { return &autoscalingv1.Scale{} }

// Destroy implements rest.Storage. The store belongs to the main resource.
func (r *scale) Destroy() {}

// Get implements rest.Getter.
func (r *scale) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	obj, err := r.store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	return scaleOf(obj.(*seedmanagementv1alpha1.ManagedSeedSet))
}

// Update implements rest.Updater.
func (r *scale) Update(
	ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc,
	_ bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	// Admission is for the scale, not for the set that is updated with it.
	obj, _, err := r.store.Update(ctx, name, scaleUpdate{info, update}, nil, rest.ValidateAllObjectUpdateFunc, false, options)
	if err != nil {
		return nil, false, err
	}
	updated, err := scaleOf(obj.(*seedmanagementv1alpha1.ManagedSeedSet))
	return updated, false, err
}

// ConvertToTable implements rest.TableConvertor.
func (r *scale) ConvertToTable(ctx context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	return rest.NewDefaultTableConvertor(schema.GroupResource{Group: autoscalingv1.GroupName, Resource: "scales"}).ConvertToTable(ctx, obj, options)
}

// scaleUpdate is the update of a set that follows from an update of its scale.
type scaleUpdate struct {
	rest.UpdatedObjectInfo
	validate rest.ValidateObjectUpdateFunc
}

// UpdatedObject implements rest.UpdatedObjectInfo.
func (u scaleUpdate) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	set := old.DeepCopyObject().(*seedmanagementv1alpha1.ManagedSeedSet)
	before, err := scaleOf(set)
	if err != nil {
		return nil, err
	}
	obj, err := u.UpdatedObjectInfo.UpdatedObject(ctx, before)
	if err != nil {
		return nil, err
	}
	after, ok := obj.(*autoscalingv1.Scale)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected a Scale, got %T", obj))
	}
	if err := u.validate(ctx, after, before); err != nil {
		return nil, err
	}
	set.Spec.Replicas = new(after.Spec.Replicas)
	if after.ResourceVersion != "" {
		set.ResourceVersion = after.ResourceVersion // so that a conflict is detected
	}
	return set, nil
}

func scaleOf(set *seedmanagementv1alpha1.ManagedSeedSet) (*autoscalingv1.Scale, error) {
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("spec.selector of ManagedSeedSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name: set.Name, Namespace: set.Namespace, UID: set.UID, ResourceVersion: set.ResourceVersion, CreationTimestamp: set.CreationTimestamp,
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: ptr.Deref(set.Spec.Replicas, 0)},
		Status: autoscalingv1.ScaleStatus{Replicas: set.Status.Replicas, Selector: selector.String()},
	}, nil
}
