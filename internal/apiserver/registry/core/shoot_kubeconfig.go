package core

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	goruntime "runtime"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	authenticationv1alpha1 "gardener.cloud/gardener/api/authentication/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/validation/authentication"
)

const (
	certificateKey = "ca.crt" // in the ConfigMap and in the InternalSecret
	privateKeyKey  = "ca.key" // in the InternalSecret
	// clientKeyBits is the size of the keys of users. They are RSA keys, as gardenlogin refuses others. They take longer to generate than those of elliptic
	// curves; certificates are valid for a day at most, so that the smallest size in use is enough.
	clientKeyBits = 2048
	// clockSkew is by how much the clocks of a shoot's nodes may lag behind for a new certificate to be valid there.
	clockSkew = time.Minute
)

// kubeAPIServerAddresses are the advertised addresses that kubeconfigs may contain: those of a kube-apiserver with a certificate of the
// shoot's CA. Anything else that is advertised does not get the user's requests.
var kubeAPIServerAddresses = []string{constants.AdvertisedAddressExternal, constants.AdvertisedAddressInternal, constants.AdvertisedAddressUnmanaged}

// kubeconfig serves a subresource of shoots that responds with short-lived credentials.
type kubeconfig struct {
	Settings
	kind string
	// subresource is its own name: users who may create it in all namespaces are in landscapeGroup, others in projectGroup.
	subresource, landscapeGroup, projectGroup string
	// maxExpiration is how long credentials are valid at most.
	maxExpiration time.Duration

	newRequest func() runtime.Object
	// expiration returns for how many seconds a request wants the credentials, and what is invalid about it.
	expiration func(request runtime.Object) (*int64, field.ErrorList)
	respond    func(request runtime.Object, kubeconfig []byte, until metav1.Time)
	// signers are those of all subresources.
	signers signers
}

// signers limits how many keys are generated at once. One takes a processor for a tenth of a second or so: members of projects who request
// kubeconfigs all the time must leave some to all other requests.
type signers chan struct{}

// newSigners returns one for every two processors.
func newSigners() signers { return make(signers, max(1, goruntime.GOMAXPROCS(0)/2)) }

// take waits for one until the request ends.
func (s signers) take(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return apierrors.NewTooManyRequests("too many kubeconfigs are requested at the same time", 1)
	}
}

func (s signers) give() { <-s }

var (
	_ rest.NamedCreater             = &kubeconfig{}
	_ rest.GroupVersionKindProvider = &kubeconfig{}
)

func newAdminKubeconfig(settings Settings, signers signers) *kubeconfig {
	type request = authenticationv1alpha1.AdminKubeconfigRequest
	return &kubeconfig{
		Settings: settings, kind: "AdminKubeconfigRequest", subresource: "adminkubeconfig", maxExpiration: settings.AdminKubeconfigMaxExpiration, signers: signers,
		landscapeGroup: constants.ShootSystemAdminsGroupName, projectGroup: constants.ShootProjectAdminsGroupName,
		newRequest: func() runtime.Object { return &request{} },
		expiration: func(obj runtime.Object) (*int64, field.ErrorList) {
			return obj.(*request).Spec.ExpirationSeconds, authentication.ValidateAdminKubeconfigRequest(obj.(*request))
		},
		respond: func(obj runtime.Object, kubeconfig []byte, until metav1.Time) {
			obj.(*request).Status = authenticationv1alpha1.AdminKubeconfigRequestStatus{Kubeconfig: kubeconfig, ExpirationTimestamp: until}
		},
	}
}

func newViewerKubeconfig(settings Settings, signers signers) *kubeconfig {
	type request = authenticationv1alpha1.ViewerKubeconfigRequest
	return &kubeconfig{
		Settings: settings, kind: "ViewerKubeconfigRequest", subresource: "viewerkubeconfig", maxExpiration: settings.ViewerKubeconfigMaxExpiration, signers: signers,
		landscapeGroup: constants.ShootSystemViewersGroupName, projectGroup: constants.ShootProjectViewersGroupName,
		newRequest: func() runtime.Object { return &request{} },
		expiration: func(obj runtime.Object) (*int64, field.ErrorList) {
			return obj.(*request).Spec.ExpirationSeconds, authentication.ValidateViewerKubeconfigRequest(obj.(*request))
		},
		respond: func(obj runtime.Object, kubeconfig []byte, until metav1.Time) {
			obj.(*request).Status = authenticationv1alpha1.ViewerKubeconfigRequestStatus{Kubeconfig: kubeconfig, ExpirationTimestamp: until}
		},
	}
}

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (r *kubeconfig) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return authenticationv1alpha1.SchemeGroupVersion.WithKind(r.kind)
}

// New implements rest.Storage.
func (r *kubeconfig) New() runtime.Object { return r.newRequest() }

// Destroy implements rest.Storage. Nothing is stored.
func (r *kubeconfig) Destroy() {}

// Create implements rest.NamedCreater: it returns the kubeconfig of a shoot. A dry run is validated, but gets none.
func (r *kubeconfig) Create(
	ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions,
) (runtime.Object, error) {
	namespace, user, err := kind.Requester(ctx)
	if err != nil {
		return nil, err
	}
	if err := validate(ctx, obj.DeepCopyObject()); err != nil {
		return nil, err
	}
	seconds, errs := r.expiration(obj)
	if len(errs) > 0 {
		return nil, apierrors.NewInvalid(authenticationv1alpha1.Kind(r.kind), name, errs)
	}
	// Fresh, as users request it as soon as they see that the shoot is there, and a CA that is being replaced must not sign any more.
	shoot := &corev1beta1.Shoot{}
	if err := r.GardenCache.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, shoot, initializer.Fresh); err != nil {
		return nil, err
	}
	groups, err := r.groups(ctx, user)
	if err != nil {
		return nil, err
	}
	ca, err := r.readCA(ctx, shoot)
	if err != nil {
		return nil, err
	}
	now := r.Clock.Now()
	until := now.Add(min(time.Duration(*seconds)*time.Second, r.maxExpiration))
	if dryrun.IsDryRun(options.DryRun) {
		return obj, nil
	}
	// The prefix keeps a user of the garden from being a subject of the shoot's RBAC with more permissions than the groups have, for example
	// a service account with the same namespace and name.
	subject := pkix.Name{CommonName: constants.KubeconfigUserNamePrefix + user.GetName(), Organization: groups}
	if err := r.signers.take(ctx); err != nil {
		return nil, err
	}
	defer r.signers.give()
	certificate, key, err := ca.sign(subject, now.Add(-clockSkew), until)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("sign a client certificate for shoot %s/%s: %w", namespace, name, err))
	}
	content, err := ca.kubeconfig(shoot, certificate, key)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("write the kubeconfig of shoot %s/%s: %w", namespace, name, err))
	}
	kind.SetResponseMeta(obj.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta), name)
	r.respond(obj, content, metav1.NewTime(until))
	return obj, nil
}

// groups returns the groups of the requester in the shoot. Permissions in the garden distinguish administrators of all shoots from
// members of one project, so that shoots can authorize and audit them differently.
func (r *kubeconfig) groups(ctx context.Context, user user.Info) ([]string, error) {
	decision, _, err := r.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: user, Verb: "create", APIGroup: corev1beta1.GroupName, APIVersion: corev1beta1.SchemeGroupVersion.Version,
		Resource: constants.ResourceShoots, Subresource: r.subresource, ResourceRequest: true,
	})
	switch {
	case err != nil:
		return nil, apierrors.NewInternalError(fmt.Errorf("authorize %q in all namespaces: %w", user.GetName(), err))
	case decision == authorizer.DecisionAllow:
		return []string{r.landscapeGroup}, nil
	}
	return []string{r.projectGroup}, nil
}

// shootCA is the CA of a shoot's clients, with what else a kubeconfig needs.
type shootCA struct {
	// bundle is the CA bundle that clients trust.
	bundle []byte
	// certificate and key are the CA that the shoot trusts.
	certificate *x509.Certificate
	key         crypto.Signer
	addresses   []corev1beta1.ShootAdvertisedAddress
}

// readCA reads the CA of a shoot. An error names what is missing: all of it exists some time after the creation of a shoot has started.
func (r *kubeconfig) readCA(ctx context.Context, shoot *corev1beta1.Shoot) (*shootCA, error) {
	missing := func(what string, args ...any) error {
		return apierrors.NewServiceUnavailable(fmt.Sprintf("shoot %s/%s has no credentials yet: %s", shoot.Namespace, shoot.Name, fmt.Sprintf(what, args...)))
	}
	ca := &shootCA{}
	for _, address := range shoot.Status.AdvertisedAddresses {
		if address.Application == nil && slices.Contains(kubeAPIServerAddresses, address.Name) {
			ca.addresses = append(ca.addresses, address)
		}
	}
	if len(ca.addresses) == 0 {
		return nil, missing("status.advertisedAddresses names no kube-apiserver")
	}

	name := shoot.Name + "." + constants.ShootProjectSecretSuffixCACluster
	bundle := &corev1.ConfigMap{}
	if err := r.KubeAPI.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: name}, bundle); apierrors.IsNotFound(err) {
		return nil, missing("ConfigMap %s does not exist", name)
	} else if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("read ConfigMap %s/%s: %w", shoot.Namespace, name, err))
	}
	if ca.bundle = []byte(bundle.Data[certificateKey]); len(ca.bundle) == 0 {
		return nil, missing("ConfigMap %s has no %s", name, certificateKey)
	}

	name = shoot.Name + "." + constants.ShootProjectSecretSuffixCAClient
	secret := &corev1beta1.InternalSecret{}
	if err := r.GardenCache.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: name}, secret, initializer.Fresh); apierrors.IsNotFound(err) {
		return nil, missing("InternalSecret %s does not exist", name)
	} else if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("read InternalSecret %s/%s: %w", shoot.Namespace, name, err))
	}
	for _, key := range []string{certificateKey, privateKeyKey} {
		if len(secret.Data[key]) == 0 {
			return nil, missing("InternalSecret %s has no %s", name, key)
		}
	}
	var err error
	if ca.certificate, ca.key, err = parseCA(secret.Data[certificateKey], secret.Data[privateKeyKey]); err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("InternalSecret %s/%s: %w", shoot.Namespace, name, err))
	}
	return ca, nil
}

// parseCA parses the first certificate, which belongs to the key, and the key. Errors quote neither.
func parseCA(certificatePEM, keyPEM []byte) (*x509.Certificate, crypto.Signer, error) {
	block, _ := pem.Decode(certificatePEM)
	if block == nil {
		return nil, nil, fmt.Errorf("%s is not PEM", certificateKey)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("%s has no valid certificate: %w", certificateKey, err)
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(keyPEM)
	if err != nil {
		return nil, nil, fmt.Errorf("%s has no valid private key", privateKeyKey)
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, nil, fmt.Errorf("%s has a %T, which cannot sign", privateKeyKey, parsed)
	}
	return certificate, key, nil
}

// sign returns a client certificate with its key.
func (ca *shootCA) sign(subject pkix.Name, from, until time.Time) (certificatePEM, keyPEM []byte, err error) {
	key, err := rsa.GenerateKey(rand.Reader, clientKeyBits)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: subject, NotBefore: from, NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true,
	}, ca.certificate, key.Public(), ca.key)
	if err != nil {
		return nil, nil, err
	}
	keyPEM = pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), keyPEM, nil
}

// kubeconfig returns a kubeconfig with a context for each address; the first one is current.
func (ca *shootCA) kubeconfig(shoot *corev1beta1.Shoot, certificate, key []byte) ([]byte, error) {
	userName := shoot.Namespace + "--" + shoot.Name
	config := clientcmdv1.Config{
		APIVersion: clientcmdv1.SchemeGroupVersion.Version, Kind: "Config", CurrentContext: userName + "-" + ca.addresses[0].Name,
		AuthInfos: []clientcmdv1.NamedAuthInfo{{
			Name: userName, AuthInfo: clientcmdv1.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key},
		}},
	}
	for _, address := range ca.addresses {
		name := userName + "-" + address.Name
		cluster := clientcmdv1.Cluster{Server: address.URL, CertificateAuthorityData: ca.bundle}
		config.Clusters = append(config.Clusters, clientcmdv1.NamedCluster{Name: name, Cluster: cluster})
		config.Contexts = append(config.Contexts, clientcmdv1.NamedContext{Name: name, Context: clientcmdv1.Context{Cluster: name, AuthInfo: userName}})
	}
	return yaml.Marshal(config)
}
