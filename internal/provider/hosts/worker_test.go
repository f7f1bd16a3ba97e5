package hosts

import (
	"slices"
	"testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/errorcode"
)

func TestClassRefusesUpdatesInPlace(t *testing.T) {
	for strategy, refused := range map[corev1beta1.MachineUpdateStrategy]bool{
		corev1beta1.AutoRollingUpdate: false, corev1beta1.AutoInPlaceUpdate: true, corev1beta1.ManualInPlaceUpdate: true,
	} {
		w := &extensionsv1alpha1.Worker{Spec: extensionsv1alpha1.WorkerSpec{Pools: []extensionsv1alpha1.WorkerPool{{Name: "p", UpdateStrategy: &strategy}}}}
		_, err := delegate{}.Class(t.Context(), w, nil, &w.Spec.Pools[0], "a")
		if (err != nil) != refused || refused && !slices.Equal(errorcode.Of(err), []corev1beta1.ErrorCode{corev1beta1.ErrorConfigurationProblem}) {
			t.Errorf("%s: the error is %v", strategy, err)
		}
	}
}
