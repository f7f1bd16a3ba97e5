package graph

import (
	"cmp"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	requester "gardener.cloud/gardener/internal/authorizer/client"
	"gardener.cloud/gardener/internal/cloudprofile"
)

// Watched returns an empty object of each kind that the graph needs. Of takes objects of these kinds.
func Watched() []client.Object {
	return []client.Object{
		&corev1beta1.BackupBucket{}, &corev1beta1.BackupEntry{}, &operationsv1alpha1.Bastion{}, &certificatesv1.CertificateSigningRequest{},
		&gardencorev1.ControllerDeployment{}, &corev1beta1.ControllerInstallation{}, &securityv1alpha1.CredentialsBinding{},
		&seedmanagementv1alpha1.Gardenlet{}, &seedmanagementv1alpha1.ManagedSeed{}, &corev1beta1.Project{}, &corev1beta1.SecretBinding{},
		&corev1beta1.Seed{}, &corev1.ServiceAccount{}, &corev1beta1.Shoot{},
	}
}

// Of returns what the graph keeps of an object, which must be of one of the watched kinds. It depends on nothing but the object.
func Of(obj client.Object) Object {
	switch obj := obj.(type) {
	case *corev1beta1.BackupBucket:
		return ofBackupBucket(obj)
	case *corev1beta1.BackupEntry:
		return ofBackupEntry(obj)
	case *operationsv1alpha1.Bastion:
		return ofBastion(obj)
	case *certificatesv1.CertificateSigningRequest:
		return ofCertificateSigningRequest(obj)
	case *gardencorev1.ControllerDeployment:
		return ofControllerDeployment(obj)
	case *corev1beta1.ControllerInstallation:
		return ofControllerInstallation(obj)
	case *securityv1alpha1.CredentialsBinding:
		return ofCredentialsBinding(obj)
	case *seedmanagementv1alpha1.Gardenlet:
		return ofGardenlet(obj)
	case *seedmanagementv1alpha1.ManagedSeed:
		return ofManagedSeed(obj)
	case *corev1beta1.Project:
		return ofProject(obj)
	case *corev1beta1.SecretBinding:
		e := edges{self: keyOf(SecretBinding, obj)}
		e.from(Secret, cmp.Or(obj.SecretRef.Namespace, obj.Namespace), obj.SecretRef.Name)
		return e.object()
	case *corev1beta1.Seed:
		return ofSeed(obj)
	case *corev1.ServiceAccount:
		return ofServiceAccount(obj)
	case *corev1beta1.Shoot:
		return ofShoot(obj)
	}
	return Object{}
}

// RefersTo reports whether an object, which must be of one of the watched kinds, refers to another.
func RefersTo(obj client.Object, target Key) bool {
	return slices.ContainsFunc(Of(obj).Edges, func(e Edge) bool { return e.From == target })
}

// edges collects those that an object declares. References without a name are left out.
type edges struct {
	self Key
	list []Edge
}

func keyOf(kind Kind, obj client.Object) Key { return Key{kind, obj.GetNamespace(), obj.GetName()} }

func (e *edges) object() Object { return Object{Key: e.self, Edges: e.list} }

// add adds an edge between any two objects.
func (e *edges) add(from, to Key, scope Scope) {
	if from.Name != "" && to.Name != "" {
		e.list = append(e.list, Edge{from, to, scope})
	}
}

// from adds an edge from an object that this one refers to.
func (e *edges) from(kind Kind, namespace, name string) {
	e.add(Key{kind, namespace, name}, e.self, Both)
}

func (e *edges) fromName(kind Kind, namespace string, name *string) {
	if name != nil {
		e.from(kind, namespace, *name)
	}
}

func (e *edges) toSeed(name *string) {
	if name != nil {
		e.add(e.self, Key{Kind: Seed, Name: *name}, Both)
	}
}

func (e *edges) toShoot(ref *corev1.ObjectReference) {
	if ref != nil {
		e.add(e.self, Key{Shoot, ref.Namespace, ref.Name}, Both)
	}
}

// credentials returns the Secret or WorkloadIdentity that a reference names. The name is empty for other kinds.
func credentials(ref *corev1.ObjectReference) Key {
	switch {
	case ref == nil:
	case ref.APIVersion == "v1" && ref.Kind == Secret.String():
		return Key{Secret, ref.Namespace, ref.Name}
	case ref.APIVersion == securityv1alpha1.SchemeGroupVersion.String() && ref.Kind == WorkloadIdentity.String():
		return Key{WorkloadIdentity, ref.Namespace, ref.Name}
	}
	return Key{}
}

// resource returns the Secret, ConfigMap or WorkloadIdentity that a reference within a namespace names. The name is empty for other kinds.
func resource(apiVersion, kind, namespace, name string) Key {
	if apiVersion == "v1" && kind == ConfigMap.String() {
		return Key{ConfigMap, namespace, name}
	}
	return credentials(&corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name})
}

func ofBackupBucket(obj *corev1beta1.BackupBucket) Object {
	e := edges{self: keyOf(BackupBucket, obj)}
	e.add(credentials(obj.Spec.CredentialsRef), e.self, Both)
	if ref := obj.Status.GeneratedSecretRef; ref != nil {
		e.from(Secret, ref.Namespace, ref.Name)
	}
	e.toSeed(obj.Spec.SeedName)
	e.toShoot(obj.Spec.ShootRef)
	return e.object()
}

func ofBackupEntry(obj *corev1beta1.BackupEntry) Object {
	e := edges{self: keyOf(BackupEntry, obj)}
	e.from(BackupBucket, "", obj.Spec.BucketName)
	e.toSeed(obj.Spec.SeedName)
	e.toSeed(obj.Status.SeedName)
	if at := slices.IndexFunc(obj.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == Shoot.String() }); at >= 0 {
		e.add(e.self, Key{Shoot, obj.Namespace, obj.OwnerReferences[at].Name}, Seeds)
	}
	if ref := obj.Spec.ShootRef; ref != nil {
		e.add(e.self, Key{Shoot, obj.Namespace, ref.Name}, Shoots)
	}
	return e.object()
}

func ofBastion(obj *operationsv1alpha1.Bastion) Object {
	e := edges{self: keyOf(Bastion, obj)}
	if obj.Spec.SeedName != nil {
		e.add(e.self, Key{Kind: Seed, Name: *obj.Spec.SeedName}, Seeds)
	}
	e.add(e.self, Key{Shoot, obj.Namespace, obj.Spec.ShootRef.Name}, Shoots)
	return e.object()
}

func ofControllerDeployment(obj *gardencorev1.ControllerDeployment) Object {
	e := edges{self: keyOf(ControllerDeployment, obj)}
	if obj.Helm != nil && obj.Helm.OCIRepository != nil {
		for _, ref := range []*corev1.LocalObjectReference{obj.Helm.OCIRepository.PullSecretRef, obj.Helm.OCIRepository.CABundleSecretRef} {
			if ref != nil {
				e.from(Secret, constants.GardenNamespace, ref.Name)
			}
		}
	}
	for _, r := range obj.Resources {
		switch r.ResourceRef.Kind {
		case Secret.String(), ConfigMap.String():
			e.add(resource("v1", r.ResourceRef.Kind, constants.GardenNamespace, r.ResourceRef.Name), e.self, Both)
		}
	}
	return e.object()
}

func ofControllerInstallation(obj *corev1beta1.ControllerInstallation) Object {
	e := edges{self: keyOf(ControllerInstallation, obj)}
	e.from(ControllerRegistration, "", obj.Spec.RegistrationRef.Name)
	if ref := obj.Spec.DeploymentRef; ref != nil {
		e.from(ControllerDeployment, "", ref.Name)
	}
	if ref := obj.Spec.SeedRef; ref != nil {
		e.toSeed(&ref.Name)
	}
	e.toShoot(obj.Spec.ShootRef)
	return e.object()
}

func ofCredentialsBinding(obj *securityv1alpha1.CredentialsBinding) Object {
	e := edges{self: keyOf(CredentialsBinding, obj)}
	ref := obj.CredentialsRef
	e.add(credentials(&ref), e.self, Both)
	if ref.APIVersion == corev1beta1.SchemeGroupVersion.String() && ref.Kind == InternalSecret.String() {
		e.from(InternalSecret, ref.Namespace, ref.Name)
	}
	return e.object()
}

func ofProject(obj *corev1beta1.Project) Object {
	e := edges{self: keyOf(Project, obj)}
	if obj.Spec.Namespace != nil {
		e.add(e.self, Key{Kind: Namespace, Name: *obj.Spec.Namespace}, Both)
	}
	return e.object()
}

// ofServiceAccount returns the token Secrets of a ServiceAccount that a new gardenlet gets its client certificate with.
func ofServiceAccount(obj *corev1.ServiceAccount) Object {
	e := edges{self: keyOf(ServiceAccount, obj)}
	if strings.HasPrefix(obj.Name, bootstrapAccountPrefix) {
		for _, ref := range obj.Secrets {
			e.add(Key{Secret, obj.Namespace, ref.Name}, e.self, Seeds)
		}
	}
	return e.object()
}

// ofSeed returns the credentials and resources that a Seed refers to.
func ofSeed(obj *corev1beta1.Seed) Object {
	e := edges{self: keyOf(Seed, obj)}
	e.addSeed(&obj.Spec, e.self)
	result := e.object()
	if expiration := obj.Status.ClientCertificateExpirationTimestamp; expiration != nil {
		result.Expiration = expiration.Time
	}
	return result
}

// addSeed adds edges to an object from what the spec of a Seed refers to.
func (e *edges) addSeed(spec *corev1beta1.SeedSpec, to Key) {
	if spec.Backup != nil {
		e.add(credentials(spec.Backup.CredentialsRef), to, Both)
	}
	if spec.DNS.Provider != nil {
		e.add(credentials(spec.DNS.Provider.CredentialsRef), to, Both)
	}
	if spec.DNS.Internal != nil {
		e.add(credentials(&spec.DNS.Internal.CredentialsRef), to, Both)
	}
	for i := range spec.DNS.Defaults {
		e.add(credentials(&spec.DNS.Defaults[i].CredentialsRef), to, Both)
	}
	for _, r := range spec.Resources {
		e.add(resource(r.ResourceRef.APIVersion, r.ResourceRef.Kind, constants.GardenNamespace, r.ResourceRef.Name), to, Both)
	}
}

// SeedTemplate returns the spec of the Seed that a gardenlet registers, from its configuration; nil if there is none.
func SeedTemplate(config *runtime.RawExtension) *corev1beta1.SeedSpec {
	if config == nil {
		return nil
	}
	var c struct {
		SeedConfig *struct {
			Spec corev1beta1.SeedSpec `json:"spec"`
		} `json:"seedConfig"`
	}
	// What cannot be decoded is refused when the object is created. It refers to nothing.
	if err := json.Unmarshal(config.Raw, &c); err != nil || c.SeedConfig == nil {
		return nil
	}
	return &c.SeedConfig.Spec
}

func ofGardenlet(obj *seedmanagementv1alpha1.Gardenlet) Object {
	e := edges{self: keyOf(Gardenlet, obj)}
	if shoot, ok := strings.CutPrefix(obj.Name, SelfHostedPrefix); ok {
		e.add(e.self, Key{Shoot, obj.Namespace, shoot}, Shoots)
		return e.object()
	}
	e.add(e.self, Key{Kind: Seed, Name: obj.Name}, Seeds)
	if spec := SeedTemplate(obj.Spec.Config); spec != nil {
		e.addSeed(spec, e.self)
	}
	repository := obj.Spec.Deployment.Helm.OCIRepository
	for _, ref := range []*corev1.LocalObjectReference{repository.CABundleSecretRef, repository.PullSecretRef} {
		if ref != nil {
			e.from(Secret, obj.Namespace, ref.Name)
		}
	}
	result := e.object()
	result.Renew = renews(obj)
	return result
}

// ofManagedSeed returns the Shoot of a ManagedSeed, its Seed, and what the Seed will refer to, which the gardenlet of the parent copies.
func ofManagedSeed(obj *seedmanagementv1alpha1.ManagedSeed) Object {
	e := edges{self: keyOf(ManagedSeed, obj)}
	seed := Key{Kind: Seed, Name: obj.Name}
	e.add(seed, e.self, Both)
	e.add(e.self, seed, Both)
	if obj.Spec.Shoot != nil {
		e.add(e.self, Key{Shoot, obj.Namespace, obj.Spec.Shoot.Name}, Both)
	}
	if spec := SeedTemplate(obj.Spec.Gardenlet.Config); spec != nil {
		e.addSeed(spec, e.self)
	}
	result := e.object()
	result.Renew = renews(obj)
	if bootstrap := obj.Spec.Gardenlet.Bootstrap; bootstrap != nil {
		switch *bootstrap {
		case seedmanagementv1alpha1.BootstrapToken:
			result.Bootstrap = BootstrapToken
		case seedmanagementv1alpha1.BootstrapServiceAccount:
			result.Bootstrap = BootstrapServiceAccount
		case seedmanagementv1alpha1.BootstrapNone:
		}
	}
	return result
}

func renews(obj client.Object) bool {
	return obj.GetAnnotations()[constants.GardenerOperation] == constants.GardenerOperationRenewKubeconfig
}

// ofShoot returns what the gardenlet needs of a project to run a Shoot. What Gardener creates there is known by its name.
func ofShoot(obj *corev1beta1.Shoot) Object {
	e := edges{self: keyOf(Shoot, obj)}
	spec := &obj.Spec
	e.toSeed(spec.SeedName)
	e.toSeed(obj.Status.SeedName)
	e.from(Namespace, "", obj.Namespace)
	e.fromName(ExposureClass, "", spec.ExposureClassName)
	e.fromName(CredentialsBinding, obj.Namespace, spec.CredentialsBindingName)
	e.fromName(SecretBinding, obj.Namespace, spec.SecretBindingName) //nolint:staticcheck // Shoots without a CredentialsBinding have one
	switch ref := cloudprofile.Reference(spec); {
	case ref == nil:
	case ref.Kind == NamespacedCloudProfile.String():
		e.from(NamespacedCloudProfile, obj.Namespace, ref.Name)
	case ref.Kind == CloudProfile.String():
		e.from(CloudProfile, "", ref.Name)
	}
	if spec.Kubernetes.KubeAPIServer != nil {
		e.addAPIServer(spec.Kubernetes.KubeAPIServer)
	}
	if spec.DNS != nil {
		for _, provider := range spec.DNS.Providers { //nolint:staticcheck // still in use
			e.fromName(Secret, obj.Namespace, provider.SecretName) //nolint:staticcheck // as above
			if ref := provider.CredentialsRef; ref != nil {
				e.add(resource(ref.APIVersion, ref.Kind, obj.Namespace, ref.Name), e.self, Both)
			}
		}
	}
	for _, r := range spec.Resources {
		e.add(resource(r.ResourceRef.APIVersion, r.ResourceRef.Kind, obj.Namespace, r.ResourceRef.Name), e.self, Both)
	}
	result := e.object()
	result.SelfHosted = obj.SelfHosted()
	if obj.Annotations[constants.AuthenticationIssuer] == constants.AuthenticationIssuerManaged {
		result.ManagedIssuer = obj.UID
	}
	return result
}

// addAPIServer adds the files of users for the kube-apiserver of a shoot.
func (e *edges) addAPIServer(api *corev1beta1.KubeAPIServerConfig) {
	namespace := e.self.Namespace
	for _, plugin := range api.AdmissionPlugins {
		e.fromName(Secret, namespace, plugin.KubeconfigSecretName)
	}
	if audit := api.AuditConfig; audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil {
		e.from(ConfigMap, namespace, audit.AuditPolicy.ConfigMapRef.Name)
	}
	if authentication := api.StructuredAuthentication; authentication != nil {
		e.from(ConfigMap, namespace, authentication.ConfigMapName)
	}
	if authorization := api.StructuredAuthorization; authorization != nil {
		e.from(ConfigMap, namespace, authorization.ConfigMapName)
		for _, kubeconfig := range authorization.Kubeconfigs {
			e.from(Secret, namespace, kubeconfig.SecretName)
		}
	}
}

// ofCertificateSigningRequest returns for whom the client certificate of a gardenlet is requested.
func ofCertificateSigningRequest(obj *certificatesv1.CertificateSigningRequest) Object {
	e := edges{self: keyOf(CertificateSigningRequest, obj)}
	subject, ok := clientSubject(obj)
	if !ok {
		return e.object()
	}
	u := &user.DefaultInfo{Name: subject.CommonName, Groups: subject.Organization}
	switch {
	case slices.Equal(subject.Organization, []string{constants.SeedsGroup}):
		if seed, ok := requester.OfSeed(u); ok {
			e.add(e.self, Key{Kind: Seed, Name: seed.Name}, Seeds)
		}
	case slices.Equal(subject.Organization, []string{constants.ShootsGroup}):
		if shoot, ok := requester.OfShoot(u); ok && shoot.Type == requester.Gardenlet && shoot.Namespace != "" {
			e.add(e.self, Key{Shoot, shoot.Namespace, shoot.Name}, Shoots)
		}
	}
	return e.object()
}

// clientSubject returns the subject of a client certificate, if a request is for one that is nothing else.
func clientSubject(obj *certificatesv1.CertificateSigningRequest) (pkix.Name, bool) {
	// A key for RSA may also encipher other keys.
	usages := slices.DeleteFunc(slices.Clone(obj.Spec.Usages), func(u certificatesv1.KeyUsage) bool {
		return u == certificatesv1.UsageKeyEncipherment
	})
	slices.Sort(usages)
	if !slices.Equal(slices.Compact(usages), []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature}) {
		return pkix.Name{}, false
	}
	block, _ := pem.Decode(obj.Spec.Request)
	if block == nil {
		return pkix.Name{}, false
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || len(request.DNSNames)+len(request.EmailAddresses)+len(request.IPAddresses)+len(request.URIs) > 0 {
		return pkix.Name{}, false
	}
	return request.Subject, true
}
