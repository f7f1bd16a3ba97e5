package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/shoot/dnsname"
	"gardener.cloud/gardener/internal/shoot/issuer"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/internal/stage/dns"
	"gardener.cloud/gardener/internal/stage/extension"
	"gardener.cloud/gardener/internal/stage/usercredential"
	"gardener.cloud/gardener/pkg/errorcode"
)

// observer reads the state of a shoot.
type observer struct {
	// gardenCache and gardenAPI are the garden, seedAPI is the seed.
	gardenCache, gardenAPI, seedAPI client.Reader
	// gateways are those of handlers of ExposureClasses, by the names of the handlers.
	gateways map[string]client.ObjectKey
}

// observe reads what is known of a shoot. For a shoot that is deleted, some of it may be missing.
func (r observer) observe(ctx context.Context, shoot *corev1beta1.Shoot, seed *corev1beta1.Seed) (*observed.State, error) {
	o := &observed.State{Shoot: shoot, Seed: seed}
	var err error
	if o.Project, err = r.project(ctx, shoot); err != nil {
		return nil, err
	}
	if o.Namespace = shoot.Status.TechnicalID; o.Namespace == "" {
		o.Namespace = observed.TechnicalID(o.Project, shoot.Name)
	}
	existing, err := observed.ReadNamespace(ctx, r.seedAPI, shoot, o.Namespace)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	o.HasNamespace = err == nil
	if shoot.HibernationWanted() && shoot.Status.Hibernated {
		if o.Stopped, err = r.apiServerStopped(ctx, o.Namespace); err != nil {
			return nil, err
		}
	}
	if moves(shoot) {
		if o.Migration, err = r.migration(ctx, o, existing); err != nil {
			return nil, err
		}
	}
	if o.Zones, err = observed.ControlPlaneZones(existing, shoot, seed); err != nil && shoot.DeletionTimestamp == nil && o.Migration == nil {
		return nil, err
	}
	if o.CloudProfile, err = r.cloudProfile(ctx, shoot); err != nil && shoot.DeletionTimestamp == nil {
		return nil, err
	}
	if o.Identity, err = r.identity(ctx, o); err != nil {
		return nil, err
	}
	if o.Internal, o.External, err = r.domains(ctx, o); err != nil && !forced(shoot) {
		return nil, err
	}
	// A shoot that is deleted or moves away keeps the gateway that it has.
	if err = r.setGateways(ctx, o); err != nil && shoot.DeletionTimestamp == nil && o.Migration == nil {
		return nil, err
	}
	if o.CloudProvider, err = r.cloudProvider(ctx, shoot); err != nil && shoot.DeletionTimestamp == nil {
		return nil, err
	}
	if o.Issuer, err = r.managedIssuer(ctx, o); err != nil && shoot.DeletionTimestamp == nil {
		return nil, err
	}
	if o.Endpoints, err = r.endpoints(ctx, o.Namespace); err != nil && shoot.DeletionTimestamp == nil {
		return nil, err
	}
	if o.UpdatedPools, err = r.updatedPools(ctx, o); err != nil {
		return nil, err
	}
	return o, r.extensions(ctx, o)
}

// updatedPools returns how far the machines of pools are that are updated in place, if there are any.
func (r observer) updatedPools(ctx context.Context, o *observed.State) (*extensionsv1alpha1.InPlaceUpdatesWorkerStatus, error) {
	if !slices.ContainsFunc(o.Shoot.Spec.Provider.Workers, updatedInPlace) {
		return nil, nil
	}
	worker := &extensionsv1alpha1.Worker{}
	if err := r.seedAPI.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Shoot.Name}, worker); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read Worker %q: %w", o.Shoot.Name, err)
	}
	return worker.Status.InPlaceUpdates, nil
}

// updatedInPlace is whether machines of a pool stay when it changes.
func updatedInPlace(pool corev1beta1.Worker) bool { return pool.UpdateStrategy.InPlace() }

// identity returns the identity of the cluster. Once it is in the status, it stays.
func (r observer) identity(ctx context.Context, o *observed.State) (string, error) {
	garden, err := clusterIdentity(ctx, r.gardenAPI)
	if err != nil {
		return "", err
	}
	return cmp.Or(ptr.Deref(o.Shoot.Status.ClusterIdentity, ""), o.Namespace+"-"+string(o.Shoot.UID)+"-"+cmp.Or(garden, "unidentified")), nil
}

// apiServerStopped reports whether the kube-apiserver of a control plane has no pods: it is started before, and stopped after, the components
// that write to the cluster.
func (r observer) apiServerStopped(ctx context.Context, namespace string) (bool, error) {
	deployment := &appsv1.Deployment{}
	err := r.seedAPI.Get(ctx, client.ObjectKey{Namespace: namespace, Name: kubeapiserver.Name}, deployment)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read Deployment %q: %w", kubeapiserver.Name, err)
	}
	return err != nil || ptr.Deref(deployment.Spec.Replicas, 0) == 0, nil
}

// project returns the name of the project of a shoot. The namespace names it, as a gardenlet may not list projects.
func (r observer) project(ctx context.Context, shoot *corev1beta1.Shoot) (string, error) {
	namespace := &corev1.Namespace{}
	if err := r.gardenAPI.Get(ctx, client.ObjectKey{Name: shoot.Namespace}, namespace); err != nil {
		return "", fmt.Errorf("read Namespace %q in the garden: %w", shoot.Namespace, err)
	}
	name := namespace.Labels[constants.ProjectName]
	if name == "" {
		return "", fmt.Errorf("namespace %q belongs to no project", shoot.Namespace)
	}
	project := &corev1beta1.Project{}
	if err := r.gardenAPI.Get(ctx, client.ObjectKey{Name: name}, project); err != nil {
		return "", fmt.Errorf("read Project %q: %w", name, err)
	}
	if ptr.Deref(project.Spec.Namespace, "") != shoot.Namespace {
		return "", fmt.Errorf("namespace %q has the label of Project %q, but does not belong to it", shoot.Namespace, name)
	}
	return name, nil
}

// cloudProfile reads the profile of a shoot. A NamespacedCloudProfile is returned as a CloudProfile; those are in no cache, as a gardenlet may
// only read the ones that its Shoots refer to.
func (r observer) cloudProfile(ctx context.Context, shoot *corev1beta1.Shoot) (*corev1beta1.CloudProfile, error) {
	ref := shoot.Spec.CloudProfile
	if ref == nil && shoot.Spec.CloudProfileName != nil {
		ref = &corev1beta1.CloudProfileReference{Kind: constants.CloudProfileReferenceKindCloudProfile, Name: *shoot.Spec.CloudProfileName}
	}
	if ref == nil {
		return nil, errors.New("spec.cloudProfile: not set")
	}
	profile := &corev1beta1.CloudProfile{}
	if ref.Kind != constants.CloudProfileReferenceKindNamespacedCloudProfile {
		if err := r.gardenCache.Get(ctx, client.ObjectKey{Name: ref.Name}, profile); err != nil {
			return nil, fmt.Errorf("read CloudProfile %q: %w", ref.Name, err)
		}
		return profile, nil
	}
	own := &corev1beta1.NamespacedCloudProfile{}
	if err := r.gardenAPI.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: ref.Name}, own); err != nil {
		return nil, fmt.Errorf("read NamespacedCloudProfile %q: %w", ref.Name, err)
	}
	profile.ObjectMeta, profile.Spec = *own.ObjectMeta.DeepCopy(), *own.Status.CloudProfileSpec.DeepCopy()
	return profile, nil
}

// missing adds a code to an error about an object that the Shoot refers to, if it does not exist.
func missing(err error) error {
	return errorcode.IfNotFound(err, corev1beta1.ErrorConfigurationProblem)
}

// domains returns the domains of a shoot. A domain that neither the shoot nor the landscape has a provider for is an error of the configuration.
// Such a shoot can be deleted.
func (r observer) domains(ctx context.Context, o *observed.State) (internal, external *dns.Domain, err error) {
	if offer := o.Seed.Spec.DNS.Internal; offer != nil {
		credential, err := usercredential.Read(ctx, r.gardenAPI, o.Shoot, offer.CredentialsRef)
		if err != nil {
			return nil, nil, fmt.Errorf("internal domain: %w", err)
		}
		internal = &dns.Domain{Name: o.Shoot.Name + "." + o.Project + "." + offer.Domain, Provider: offer.Type, Zone: offer.Zone, Credentials: credential}
	}
	spec := o.Shoot.Spec.DNS
	if spec == nil || spec.Domain == nil {
		return internal, nil, nil
	}
	external = &dns.Domain{Name: *spec.Domain}
	for _, provider := range spec.Providers {
		if !ptr.Deref(provider.Primary, false) {
			continue
		}
		external.Provider = ptr.Deref(provider.Type, "")
		ref := corev1.ObjectReference{Kind: usercredential.Secret, Namespace: o.Shoot.Namespace, Name: ptr.Deref(provider.SecretName, "")}
		if provider.CredentialsRef != nil {
			ref.Kind, ref.Name = provider.CredentialsRef.Kind, provider.CredentialsRef.Name
		}
		if ref.Name == "" || !external.Managed() {
			break
		}
		if external.Credentials, err = usercredential.Read(ctx, r.gardenAPI, o.Shoot, ref); err != nil {
			return nil, nil, missing(fmt.Errorf("domain %q: %w", external.Name, err))
		}
		return internal, external, nil
	}
	if external.Managed() {
		if err := r.defaultDomain(ctx, o, external); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case external.Provider != "":
	case o.Shoot.DeletionTimestamp != nil:
		external.Provider = constants.DNSProviderUnmanaged // there are no records to delete
	default:
		return nil, nil, errorcode.With(fmt.Errorf("spec.dns.providers: domain %q is in no default domain, and has no primary provider with a type", external.Name),
			corev1beta1.ErrorConfigurationProblem)
	}
	return internal, external, nil
}

// defaultDomain finds the provider and the credentials for a domain that the seed offers or, if it offers none itself, the landscape. Other domains stay as
// they are.
func (r observer) defaultDomain(ctx context.Context, o *observed.State, d *dns.Domain) error {
	offers := o.Seed.Spec.DNS.Defaults
	if len(offers) == 0 {
		return r.gardenDefaultDomain(ctx, o, d)
	}
	closest := closestOffer(d.Name, offers, func(offer corev1beta1.SeedDNSProviderConfig) string { return offer.Domain })
	if closest == nil {
		return nil
	}
	credential, err := usercredential.Read(ctx, r.gardenAPI, o.Shoot, closest.CredentialsRef)
	if err != nil {
		return fmt.Errorf("domain %q: %w", d.Name, err)
	}
	d.Provider, d.Zone, d.Credentials = closest.Type, closest.Zone, credential
	return nil
}

// gardenDefaultDomain finds the credentials for a domain that the landscape offers to seeds without default domains.
func (r observer) gardenDefaultDomain(ctx context.Context, o *observed.State, d *dns.Domain) error {
	offers := &corev1.SecretList{}
	// gardener-controller-manager copies them to the namespace of the seed.
	if err := r.gardenAPI.List(ctx, offers, client.InNamespace(constants.SeedNamespaceNamePrefix+o.Seed.Name),
		client.MatchingLabels{constants.GardenRole: constants.GardenRoleDefaultDomain}); err != nil {
		return fmt.Errorf("list default domains: %w", err)
	}
	closest := closestOffer(d.Name, offers.Items, func(offer corev1.Secret) string { return offer.Annotations[constants.DNSDomain] })
	if closest == nil {
		return nil
	}
	d.Provider, d.Credentials = closest.Annotations[constants.DNSProvider], usercredential.Credential{Kind: usercredential.Secret, Data: closest.Data}
	if zone := closest.Annotations[constants.DNSZone]; zone != "" {
		d.Zone = &zone
	}
	return nil
}

// closestOffer returns the offer with the longest domain that another domain is within. It is nil if there is none.
func closestOffer[T any](name string, offers []T, domainOf func(T) string) *T {
	domains := make([]string, len(offers))
	for i, offer := range offers {
		domains[i] = domainOf(offer)
	}
	closest := dnsname.Closest(name, domains)
	if closest == "" {
		return nil
	}
	return &offers[slices.Index(domains, closest)]
}

// cloudProvider reads the credential for the infrastructure. A shoot without workers has none.
func (r observer) cloudProvider(ctx context.Context, shoot *corev1beta1.Shoot) (*usercredential.Credential, error) {
	var ref corev1.ObjectReference
	switch {
	case shoot.Spec.CredentialsBindingName != nil:
		binding := &securityv1alpha1.CredentialsBinding{}
		if err := r.gardenAPI.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: *shoot.Spec.CredentialsBindingName}, binding); err != nil {
			return nil, missing(fmt.Errorf("read CredentialsBinding %q: %w", *shoot.Spec.CredentialsBindingName, err))
		}
		ref = binding.CredentialsRef
	case shoot.Spec.SecretBindingName != nil:
		binding := &corev1beta1.SecretBinding{}
		if err := r.gardenAPI.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: *shoot.Spec.SecretBindingName}, binding); err != nil {
			return nil, missing(fmt.Errorf("read SecretBinding %q: %w", *shoot.Spec.SecretBindingName, err))
		}
		ref.Kind, ref.Namespace, ref.Name = usercredential.Secret, cmp.Or(binding.SecretRef.Namespace, shoot.Namespace), binding.SecretRef.Name
	default:
		return nil, nil //nolint:nilnil // some infrastructures need none
	}
	credential, err := usercredential.Read(ctx, r.gardenAPI, shoot, ref)
	if err != nil {
		return nil, errorcode.IfNotFound(fmt.Errorf("credentials for the infrastructure: %w", err), corev1beta1.ErrorInfraUnauthenticated)
	}
	return &credential, nil
}

// extensions reads which Extensions a shoot has, and which exist although it has them no longer.
func (r observer) extensions(ctx context.Context, o *observed.State) error {
	registrations := &corev1beta1.ControllerRegistrationList{}
	if err := r.gardenCache.List(ctx, registrations); err != nil {
		return fmt.Errorf("list ControllerRegistrations: %w", err)
	}
	o.Extensions = extension.Desired(o.Shoot, registrations.Items)
	if !o.HasNamespace {
		return nil
	}
	existing := &extensionsv1alpha1.ExtensionList{}
	if err := r.seedAPI.List(ctx, existing, client.InNamespace(o.Namespace)); err != nil {
		return fmt.Errorf("list Extensions: %w", err)
	}
	o.StaleExtensions = extension.Stale(existing.Items, o.Extensions, registrations.Items)
	for i := range o.Extensions {
		o.Extensions[i].Reconciled = slices.ContainsFunc(existing.Items, func(e extensionsv1alpha1.Extension) bool {
			last := e.Status.LastOperation
			return e.Name == o.Extensions[i].Type && last != nil && (last.State == corev1beta1.LastOperationStateSucceeded || last.Type != corev1beta1.LastOperationTypeCreate)
		})
	}
	return nil
}

// managedIssuer returns the URL of the managed issuer of a shoot. It is empty if the kube-apiserver is the issuer.
func (r observer) managedIssuer(ctx context.Context, o *observed.State) (string, error) {
	if !issuer.Managed(o.Shoot) {
		return "", nil
	}
	list := &corev1.SecretList{}
	// gardener-controller-manager copies it to the namespace of the seed.
	if err := r.gardenAPI.List(ctx, list, client.InNamespace(constants.SeedNamespaceNamePrefix+o.Seed.Name),
		client.MatchingLabels{constants.GardenRole: constants.GardenRoleShootServiceAccountIssuer}); err != nil {
		return "", fmt.Errorf("read host of managed issuers: %w", err)
	}
	for _, secret := range list.Items {
		if host := string(secret.Data[issuer.HostnameKey]); host != "" {
			return issuer.URL(host, o.Project, o.Shoot.UID), nil
		}
	}
	// No code: gardener-apiserver has seen a host in the garden namespace, so that its copy comes, and only an operator can create it again.
	return "", fmt.Errorf("no Secret in the namespace of seed %q has the host of managed issuers of service account tokens", o.Seed.Name)
}

// clusterIdentity reads the identity of a cluster. It is empty if there is none.
func clusterIdentity(ctx context.Context, c client.Reader) (string, error) {
	configMap := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: constants.ClusterIdentity}, configMap)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("read ConfigMap %q: %w", constants.ClusterIdentity, err)
	}
	return configMap.Data[constants.ClusterIdentity], nil
}
