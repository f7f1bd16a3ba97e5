package state

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/kube/shard"
)

// saveable is whether the state of a control plane is complete: not while it is created, migrated or restored.
func saveable(shoot *corev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	if last == nil || shoot.Status.TechnicalID == "" {
		return false
	}
	switch last.Type {
	case corev1beta1.LastOperationTypeReconcile:
		return true
	case corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationTypeRestore:
		return last.State == corev1beta1.LastOperationStateSucceeded
	case corev1beta1.LastOperationTypeDelete, corev1beta1.LastOperationTypeMigrate, corev1beta1.LastOperationTypeLiveMigrate:
	}
	return false
}

// nextSave is when a state is to be saved: at once for a new Shoot, then after the period, or up to a tenth of it earlier, so that not all
// shoots are saved at once.
func nextSave(shoot *corev1beta1.Shoot, saved *corev1beta1.ShootState, period time.Duration, now time.Time) time.Time {
	last, err := time.Parse(time.RFC3339Nano, saved.Annotations[constants.GardenerTimestamp])
	if err != nil || last.After(now) {
		return now
	}
	return last.Add(period - shard.Delay(shoot.UID, last, period/10))
}

// secretData are Secrets with credentials, as they are in a ShootState.
func secretData(secrets []corev1.Secret) ([]corev1beta1.GardenerResourceData, error) {
	list := make([]corev1beta1.GardenerResourceData, 0, len(secrets))
	for _, secret := range secrets {
		data, err := json.Marshal(secret.Data)
		if err != nil {
			return nil, fmt.Errorf("encode Secret %q", secret.Name) // the error itself may quote its data
		}
		list = append(list, corev1beta1.GardenerResourceData{
			Name: secret.Name, Type: constants.DataTypeSecret, Labels: maps.Clone(secret.Labels), Data: runtime.RawExtension{Raw: data},
		})
	}
	slices.SortFunc(list, func(a, b corev1beta1.GardenerResourceData) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// extensionState returns the state of an extension resource, or false if it has none.
func extensionState(kind string, object extensionsv1alpha1.Object) (corev1beta1.ExtensionResourceState, bool) {
	status := object.GetExtensionStatus()
	if status.GetState() == nil && len(status.GetResources()) == 0 || object.GetDeletionTimestamp() != nil {
		return corev1beta1.ExtensionResourceState{}, false
	}
	state := corev1beta1.ExtensionResourceState{Kind: kind, Name: new(object.GetName()), State: status.GetState(), Resources: status.GetResources()}
	if o, ok := object.(*extensionsv1alpha1.OperatingSystemConfig); ok {
		state.Purpose = new(string(o.Spec.Purpose))
	}
	return state, true
}

func sortStates(states []corev1beta1.ExtensionResourceState) {
	slices.SortFunc(states, func(a, b corev1beta1.ExtensionResourceState) int {
		if c := strings.Compare(a.Kind, b.Kind); c != 0 {
			return c
		}
		return strings.Compare(*a.Name, *b.Name)
	})
}
