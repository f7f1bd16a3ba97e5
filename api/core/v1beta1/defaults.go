package v1beta1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// addDefaultingFuncs registers the defaults of all kinds in this package. They depend on the object alone: what needs to
// need other objects are set by admission plugins.
func addDefaultingFuncs(scheme *runtime.Scheme) error {
	addDefaults(scheme, DefaultCloudProfile, func(l *CloudProfileList) []CloudProfile { return l.Items })
	addDefaults(scheme, DefaultControllerRegistration, func(l *ControllerRegistrationList) []ControllerRegistration { return l.Items })
	addDefaults(scheme, DefaultNamespacedCloudProfile, func(l *NamespacedCloudProfileList) []NamespacedCloudProfile { return l.Items })
	addDefaults(scheme, DefaultProject, func(l *ProjectList) []Project { return l.Items })
	addDefaults(scheme, DefaultSecretBinding, func(l *SecretBindingList) []SecretBinding { return l.Items })
	addDefaults(scheme, DefaultSeed, func(l *SeedList) []Seed { return l.Items })
	addDefaults(scheme, DefaultShoot, func(l *ShootList) []Shoot { return l.Items })
	return nil
}

// addDefaults registers a defaulting function for a kind and for its list.
func addDefaults[T, L any, PT object[T], PL object[L]](scheme *runtime.Scheme, set func(*T), items func(*L) []T) {
	scheme.AddTypeDefaultingFunc(PT(new(T)), func(obj any) { set(obj.(*T)) })
	scheme.AddTypeDefaultingFunc(PL(new(L)), func(obj any) {
		list := items(obj.(*L))
		for i := range list {
			set(&list[i])
		}
	})
}

// object is a pointer to a registered type.
type object[T any] interface {
	*T
	runtime.Object
}

// setDefault sets an optional field to a value if it is unset.
func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// ensure creates an optional object if it is nil, and returns it.
func ensure[T any](field **T) *T {
	if *field == nil {
		*field = new(T)
	}
	return *field
}

// setDuration sets an optional duration if it is unset.
func setDuration(field **metav1.Duration, value time.Duration) {
	setDefault(field, metav1.Duration{Duration: value})
}
