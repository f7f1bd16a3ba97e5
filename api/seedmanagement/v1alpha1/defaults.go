package v1alpha1

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
)

// DefaultShootCapacity is how many shoots a seed has room for if its gardenlet's configuration does not say.
const DefaultShootCapacity = "250"

// addDefaultingFuncs registers the defaults of all kinds in this package.
func addDefaultingFuncs(scheme *runtime.Scheme) error {
	scheme.AddTypeDefaultingFunc(&Gardenlet{}, func(obj any) { DefaultGardenlet(obj.(*Gardenlet)) })
	scheme.AddTypeDefaultingFunc(&GardenletList{}, func(obj any) {
		list := obj.(*GardenletList)
		for i := range list.Items {
			DefaultGardenlet(&list.Items[i])
		}
	})
	scheme.AddTypeDefaultingFunc(&ManagedSeed{}, func(obj any) { DefaultManagedSeed(obj.(*ManagedSeed)) })
	scheme.AddTypeDefaultingFunc(&ManagedSeedList{}, func(obj any) {
		list := obj.(*ManagedSeedList)
		for i := range list.Items {
			DefaultManagedSeed(&list.Items[i])
		}
	})
	scheme.AddTypeDefaultingFunc(&ManagedSeedSet{}, func(obj any) { DefaultManagedSeedSet(obj.(*ManagedSeedSet)) })
	scheme.AddTypeDefaultingFunc(&ManagedSeedSetList{}, func(obj any) {
		list := obj.(*ManagedSeedSetList)
		for i := range list.Items {
			DefaultManagedSeedSet(&list.Items[i])
		}
	})
	return nil
}

// DefaultGardenlet fills in the defaults of a Gardenlet.
func DefaultGardenlet(gardenlet *Gardenlet) {
	defaultDeployment(&gardenlet.Spec.Deployment.GardenletDeployment)
	defaultConfig(&gardenlet.Spec.Config)
}

// DefaultManagedSeed fills in the defaults of a ManagedSeed.
func DefaultManagedSeed(managedSeed *ManagedSeed) {
	gardenlet := &managedSeed.Spec.Gardenlet
	if gardenlet.Deployment == nil {
		gardenlet.Deployment = &GardenletDeployment{}
	}
	defaultDeployment(gardenlet.Deployment)
	defaultConfig(&gardenlet.Config)
	setDefault(&gardenlet.Bootstrap, BootstrapToken)
	setDefault(&gardenlet.MergeWithParent, true)
}

// DefaultManagedSeedSet fills in the defaults of a ManagedSeedSet. Most of what the templates leave out is filled in when
// objects are created from them.
func DefaultManagedSeedSet(set *ManagedSeedSet) {
	setDefault(&set.Spec.Replicas, 1)
	setDefault(&set.Spec.RevisionHistoryLimit, 10)
	if set.Spec.UpdateStrategy == nil {
		set.Spec.UpdateStrategy = &UpdateStrategy{}
	}
	setDefault(&set.Spec.UpdateStrategy.Type, RollingUpdateStrategyType)
	if rollingUpdate := set.Spec.UpdateStrategy.RollingUpdate; rollingUpdate != nil {
		setDefault(&rollingUpdate.Partition, 0)
	}
	gardenlet := &set.Spec.Template.Spec.Gardenlet
	if gardenlet.Deployment != nil {
		defaultDeployment(gardenlet.Deployment)
	}
	if gardenlet.Config != nil {
		normalizeConfig(gardenlet.Config, nil)
	}
}

func defaultDeployment(deployment *GardenletDeployment) {
	setDefault(&deployment.ReplicaCount, 2)
	setDefault(&deployment.RevisionHistoryLimit, 2)
	setDefault(&deployment.EnableHealthProbes, true)
	if deployment.Image == nil {
		deployment.Image = &Image{}
	}
	policy := corev1.PullIfNotPresent
	if deployment.Image.Tag != nil && *deployment.Image.Tag == "latest" {
		policy = corev1.PullAlways
	}
	setDefault(&deployment.Image.PullPolicy, policy)
}

// defaultConfig makes a configuration exist and gives the seed a capacity.
func defaultConfig(config **runtime.RawExtension) {
	if *config == nil {
		*config = &runtime.RawExtension{}
	}
	normalizeConfig(*config, func(config *gardenletconfigv1alpha1.GardenletConfiguration) {
		if config.Resources == nil {
			config.Resources = &gardenletconfigv1alpha1.ResourcesConfiguration{}
		}
		if _, ok := config.Resources.Capacity["shoots"]; !ok {
			if config.Resources.Capacity == nil {
				config.Resources.Capacity = corev1.ResourceList{}
			}
			config.Resources.Capacity["shoots"] = resource.MustParse(DefaultShootCapacity)
		}
	})
}

// normalizeConfig writes a gardenlet configuration the way its type does, after a change. Unknown settings are
// dropped, as in other objects. A configuration that cannot be read is left alone, as validation says what is wrong with it.
func normalizeConfig(raw *runtime.RawExtension, change func(*gardenletconfigv1alpha1.GardenletConfiguration)) {
	config := &gardenletconfigv1alpha1.GardenletConfiguration{}
	if len(raw.Raw) > 0 {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(raw.Raw, config); err != nil {
			return
		}
	}
	want := gardenletconfigv1alpha1.SchemeGroupVersion.WithKind("GardenletConfiguration")
	if config.APIVersion == "" {
		config.APIVersion = want.GroupVersion().String()
	}
	if config.Kind == "" {
		config.Kind = want.Kind
	}
	if config.GroupVersionKind() != want {
		return
	}
	if change != nil {
		change(config)
	}
	data, err := json.Marshal(config)
	if err != nil {
		return
	}
	*raw = runtime.RawExtension{Raw: data}
}

func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
