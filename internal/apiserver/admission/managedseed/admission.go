// Package managedseed completes ManagedSeeds from their Shoot, and checks that they match.
package managedseed

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
	"gardener.cloud/gardener/internal/shoot/dnsname"
)

// Name is the name of the plugin.
const Name = "ManagedSeed"

// gardenNamespace is where the secrets of default domains are.
const gardenNamespace = "garden"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// New returns the plugin.
func New() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// Plugin completes and checks ManagedSeeds. Reads Shoots, ManagedSeeds, and which domains the secrets of default domains are for.
type Plugin struct {
	*admission.Handler
	initializer.Base
}

var (
	_ admission.MutationInterface   = &Plugin{}
	_ admission.ValidationInterface = &Plugin{}
)

// Admit implements admission.MutationInterface: what the configuration of the gardenlet leaves open about the seed follows from the
// Shoot.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	managedSeed, shoot, err := p.of(ctx, a)
	if err != nil || shoot == nil {
		return err
	}
	// While the Shoot moves from one seed to another, both gardenlets have to see it.
	maps.DeleteFunc(managedSeed.Labels, func(key, _ string) bool { return strings.HasPrefix(key, constants.PrefixSeedName) })
	for _, seedName := range []*string{shoot.Spec.SeedName, shoot.Status.SeedName} {
		if seedName != nil {
			metav1.SetMetaDataLabel(&managedSeed.ObjectMeta, constants.PrefixSeedName+*seedName, "true")
		}
	}
	config := seedConfig(managedSeed)
	if config == nil {
		return nil
	}
	if domain(shoot) == "" { // otherwise the error would be what cannot be completed without it
		return invalid(managedSeed, checkShoot(shoot))
	}
	if err := p.complete(ctx, &config.SeedConfig.Spec, shoot); err != nil {
		return err
	}
	data, err := json.Marshal(config)
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("encode spec.gardenlet.config: %w", err))
	}
	managedSeed.Spec.Gardenlet.Config = &runtime.RawExtension{Raw: data}
	return nil
}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	managedSeed, shoot, err := p.of(ctx, a)
	if err != nil || shoot == nil {
		return err
	}
	errs := checkShoot(shoot)
	if a.GetOperation() == admission.Create {
		// It would be in the way of the deletion. Those that exist can be changed still.
		if shoot.DeletionTimestamp != nil {
			errs = append(errs, field.Invalid(shootPath, shoot.Name, "the Shoot is being deleted"))
		}
		others := &seedmanagementv1alpha1.ManagedSeedList{}
		if err := p.GardenCache.List(ctx, others, client.InNamespace(managedSeed.Namespace), client.MatchingFields{"spec.shoot.name": shoot.Name}); err != nil {
			return apierrors.NewInternalError(fmt.Errorf("list ManagedSeeds: %w", err))
		}
		for i := range others.Items {
			if others.Items[i].Name != managedSeed.Name {
				errs = append(errs, field.Invalid(shootPath, shoot.Name, fmt.Sprintf("is the Seed of ManagedSeed %q already", others.Items[i].Name)))
			}
		}
	}
	if config := seedConfig(managedSeed); config != nil {
		errs = append(errs, checkSeed(&config.SeedConfig.Spec, shoot)...)
	}
	return invalid(managedSeed, errs)
}

var (
	shootPath = field.NewPath("spec", "shoot", "name")
	seedPath  = field.NewPath("spec", "gardenlet", "config", "seedConfig", "spec")
)

func invalid(managedSeed *seedmanagementv1alpha1.ManagedSeed, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(seedmanagementv1alpha1.SchemeGroupVersion.WithKind("ManagedSeed").GroupKind(), managedSeed.Name, errs)
}

// of returns the ManagedSeed of a request with its Shoot; no Shoot if the request is for another resource or names none, which
// validation refuses.
func (p *Plugin) of(ctx context.Context, a admission.Attributes) (*seedmanagementv1alpha1.ManagedSeed, *corev1beta1.Shoot, error) {
	managedSeed, ok := a.GetObject().(*seedmanagementv1alpha1.ManagedSeed)
	if !ok || a.GetSubresource() != "" || managedSeed.DeletionTimestamp != nil || managedSeed.Spec.Shoot == nil || managedSeed.Spec.Shoot.Name == "" {
		return managedSeed, nil, nil
	}
	key := client.ObjectKey{Namespace: managedSeed.Namespace, Name: managedSeed.Spec.Shoot.Name}
	shoot, opts := &corev1beta1.Shoot{}, []client.GetOption(nil)
	if a.GetOperation() == admission.Create { // that its deletion has begun a moment ago counts
		opts = append(opts, initializer.Fresh)
	}
	switch err := p.GardenCache.Get(ctx, key, shoot, opts...); {
	case apierrors.IsNotFound(err):
		return managedSeed, nil, invalid(managedSeed, field.ErrorList{field.Invalid(shootPath, key.Name, "Shoot not found")})
	case err != nil:
		return managedSeed, nil, apierrors.NewInternalError(fmt.Errorf("read Shoot %q: %w", key, err))
	}
	return managedSeed, shoot, nil
}

// seedConfig returns the configuration of the gardenlet if there is one with a seed. Validation refuses an invalid one.
func seedConfig(managedSeed *seedmanagementv1alpha1.ManagedSeed) *gardenletconfigv1alpha1.GardenletConfiguration {
	raw := managedSeed.Spec.Gardenlet.Config
	if raw == nil || len(raw.Raw) == 0 {
		return nil
	}
	config := &gardenletconfigv1alpha1.GardenletConfiguration{}
	want := gardenletconfigv1alpha1.SchemeGroupVersion.WithKind("GardenletConfiguration")
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw.Raw, config); err != nil || config.GroupVersionKind() != want || config.SeedConfig == nil {
		return nil
	}
	return config
}

// checkShoot returns what keeps a Shoot from being a Seed.
func checkShoot(shoot *corev1beta1.Shoot) field.ErrorList {
	var errs field.ErrorList
	refuse := func(wrong bool, why string) {
		if wrong {
			errs = append(errs, field.Invalid(shootPath, shoot.Name, why))
		}
	}
	spec := &shoot.Spec
	refuse(domain(shoot) == "", "the Shoot has no domain yet; by default it gets one when it is bound to a seed")
	refuse(spec.Workerless(), "the Shoot has no workers")
	refuse(spec.Addons != nil && spec.Addons.NginxIngress != nil && spec.Addons.NginxIngress.Enabled, "the Shoot has the addon nginxIngress, but a Seed has its own")
	refuse(spec.Kubernetes.VerticalPodAutoscaler == nil || !spec.Kubernetes.VerticalPodAutoscaler.Enabled, "the Shoot has no vertical pod autoscaling, but a Seed needs it")
	return errs
}

// checkSeed returns where a Seed differs from its Shoot.
func checkSeed(seed *corev1beta1.SeedSpec, shoot *corev1beta1.Shoot) field.ErrorList {
	var errs field.ErrorList
	same := func(got, want string, path *field.Path) {
		if want != "" && got != want {
			errs = append(errs, field.Invalid(path, got, fmt.Sprintf("must be that of the Shoot, %q", want)))
		}
	}
	if seed.Ingress != nil {
		same(seed.Ingress.Domain, ingressDomain(shoot), seedPath.Child("ingress", "domain"))
	}
	if networking := shoot.Spec.Networking; networking != nil {
		if seed.Networks.Nodes != nil {
			same(*seed.Networks.Nodes, text(networking.Nodes), seedPath.Child("networks", "nodes"))
		}
		same(seed.Networks.Pods, text(networking.Pods), seedPath.Child("networks", "pods"))
		same(seed.Networks.Services, text(networking.Services), seedPath.Child("networks", "services"))
	}
	same(seed.Provider.Type, shoot.Spec.Provider.Type, seedPath.Child("provider", "type"))
	same(seed.Provider.Region, shoot.Spec.Region, seedPath.Child("provider", "region"))
	if extra := sets.New(seed.Provider.Zones...).Difference(zones(shoot)); extra.Len() > 0 {
		errs = append(errs, field.Invalid(seedPath.Child("provider", "zones"), seed.Provider.Zones, "no worker of the Shoot is in "+strings.Join(sets.List(extra), ", ")))
	}
	if seed.Settings != nil && seed.Settings.VerticalPodAutoscaler != nil && seed.Settings.VerticalPodAutoscaler.Enabled {
		errs = append(errs, field.Invalid(seedPath.Child("settings", "verticalPodAutoscaler", "enabled"), true, "must be false, as the Shoot has it"))
	}
	return errs
}

// complete sets the fields that a seed leaves open.
func (p *Plugin) complete(ctx context.Context, seed *corev1beta1.SeedSpec, shoot *corev1beta1.Shoot) error {
	if seed.Backup != nil {
		setDefault(&seed.Backup.Provider, shoot.Spec.Provider.Type)
	}
	if seed.Ingress == nil {
		seed.Ingress = &corev1beta1.Ingress{Controller: corev1beta1.IngressController{Kind: "nginx"}}
	}
	setDefault(&seed.Ingress.Domain, ingressDomain(shoot))
	if seed.DNS.Provider == nil {
		provider, err := p.dnsProvider(ctx, shoot)
		if err != nil {
			return err
		}
		seed.DNS.Provider = provider
	}
	if networking := shoot.Spec.Networking; networking != nil {
		if seed.Networks.Nodes == nil && networking.Nodes != nil {
			nodes := *networking.Nodes
			seed.Networks.Nodes = &nodes
		}
		setDefault(&seed.Networks.Pods, text(networking.Pods))
		setDefault(&seed.Networks.Services, text(networking.Services))
	}
	setDefault(&seed.Provider.Type, shoot.Spec.Provider.Type)
	setDefault(&seed.Provider.Region, shoot.Spec.Region)
	if len(seed.Provider.Zones) == 0 {
		seed.Provider.Zones = sets.List(zones(shoot))
	}
	if seed.Settings == nil {
		seed.Settings = &corev1beta1.SeedSettings{}
	}
	if seed.Settings.VerticalPodAutoscaler == nil {
		seed.Settings.VerticalPodAutoscaler = &corev1beta1.SeedSettingVerticalPodAutoscaler{}
	}
	return nil
}

// dnsProvider returns the DNS provider of a Shoot's domain: its own primary one, or that of the default domain that its domain is in.
func (p *Plugin) dnsProvider(ctx context.Context, shoot *corev1beta1.Shoot) (*corev1beta1.SeedDNSProvider, error) {
	if shoot.Spec.DNS != nil {
		for _, provider := range shoot.Spec.DNS.Providers {
			if provider.Primary == nil || !*provider.Primary || provider.Type == nil {
				continue
			}
			ref := &corev1.ObjectReference{Namespace: shoot.Namespace}
			switch {
			case provider.CredentialsRef != nil:
				ref.APIVersion, ref.Kind, ref.Name = provider.CredentialsRef.APIVersion, provider.CredentialsRef.Kind, provider.CredentialsRef.Name
			case provider.SecretName != nil:
				ref.APIVersion, ref.Kind, ref.Name = "v1", "Secret", *provider.SecretName
			default:
				return nil, nil
			}
			return &corev1beta1.SeedDNSProvider{Type: *provider.Type, CredentialsRef: ref}, nil
		}
	}
	secrets := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "SecretList"}}
	err := p.KubeAPI.List(ctx, secrets, initializer.FromCache, client.InNamespace(gardenNamespace),
		client.MatchingLabels{constants.GardenRole: constants.GardenRoleDefaultDomain})
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("list secrets of default domains: %w", err))
	}
	var provider *corev1beta1.SeedDNSProvider
	closest := ""
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		if name := secret.Annotations[constants.DNSDomain]; dnsname.Within(domain(shoot), name) && len(name) > len(closest) {
			closest, provider = name, &corev1beta1.SeedDNSProvider{
				Type:           secret.Annotations[constants.DNSProvider],
				CredentialsRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: secret.Namespace, Name: secret.Name},
			}
		}
	}
	return provider, nil
}

// ingressDomain is where a Seed has its ingress.
func ingressDomain(shoot *corev1beta1.Shoot) string {
	if domain(shoot) == "" {
		return ""
	}
	return "ingress." + domain(shoot)
}

func domain(shoot *corev1beta1.Shoot) string {
	if shoot.Spec.DNS == nil {
		return ""
	}
	return text(shoot.Spec.DNS.Domain)
}

func zones(shoot *corev1beta1.Shoot) sets.Set[string] {
	out := sets.New[string]()
	for _, worker := range shoot.Spec.Provider.Workers {
		out.Insert(worker.Zones...)
	}
	return out
}

func text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

func setDefault(field *string, value string) {
	if *field == "" {
		*field = value
	}
}
