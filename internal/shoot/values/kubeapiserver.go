package values

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/apiserverproxy"
	"gardener.cloud/gardener/internal/component/encryption"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/component/systemcomponent"
	"gardener.cloud/gardener/internal/component/vpnseedserver"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/internal/stage/serviceaccountkey"
	"gardener.cloud/gardener/pkg/secrets"
)

// KubeAPIServer returns the values of the kube-apiserver with a number of pods. The files are those to which its configuration refers.
func (s Source) KubeAPIServer(replicas int32, files kubeapiserver.Files) (kubeapiserver.Values, error) {
	shoot, err := s.shoot()
	if err != nil {
		return kubeapiserver.Values{}, err
	}
	image, set, err := s.imageAndCredentials(kubeapiserver.Name)
	if err != nil {
		return kubeapiserver.Values{}, err
	}
	encryption, err := s.Encryption()
	if err != nil {
		return kubeapiserver.Values{}, err
	}
	config := shoot.Spec.Kubernetes.KubeAPIServer.DeepCopy()
	if config != nil {
		config.Autoscaling = bounded(s.State, config.Autoscaling)
	}
	v := kubeapiserver.Values{
		Namespace: s.Namespace, Image: image, Version: s.version(), Replicas: replicas, Spread: s.Spread(), TrafficDistribution: s.TrafficDistribution(),
		Workerless: shoot.Workerless(), Autoscaling: horizontally(s.State, replicas),
		Config: config, ServiceNetworks: ptr.Deref(shoot.Status.Networking, corev1beta1.NetworkingStatus{}).Services, Issuer: s.DefaultIssuer(),
		Secrets: kubeapiserver.Secrets{
			ClientCA: set.BundleName(constants.SecretNameCAClient), EtcdCA: set.BundleName(constants.SecretNameCAETCD),
			FrontProxyCA: set.BundleName(constants.SecretNameCAFrontProxy), KubeletCA: set.BundleName(constants.SecretNameCAKubelet),
			Server: set.Name(credentials.KubeAPIServer), EtcdClient: set.Name(credentials.EtcdClient),
			KubeletClient: set.Name(credentials.KubeAPIServerKubelet), Aggregator: set.Name(credentials.KubeAggregator),
			ServiceAccountKey: set.Name(constants.SecretNameServiceAccountKey), ServiceAccountKeys: set.BundleName(constants.SecretNameServiceAccountKey),
		},
		Encryption: encryption, Files: files,
	}
	if s.Issuer != "" { // tokens that the kube-apiserver has issued before are still accepted
		v.Issuer, v.JWKSURI, v.AcceptedIssuers = s.Issuer, serviceaccountkey.KeySetURL(s.Issuer), []string{s.DefaultIssuer()}
	}
	if hosts := s.Hosts(); len(hosts) > 0 {
		v.ExternalHostname = hosts[0]
	}
	ranges, err := systemcomponent.NetworksOf(shoot)
	if err != nil {
		return v, err
	}
	if !shoot.Workerless() || ranges.PreferIPv6() { // the pod's own address may be of another family
		v.AdvertiseAddress = apiserverproxy.AdvertiseAddress(ranges).String()
	}
	if !shoot.Workerless() {
		v.Tunnel = vpnseedserver.Tunnel(set.Name(credentials.HTTPProxyClient), set.BundleName(constants.SecretNameCAVPN))
		agents, err := resourcemanager.AuthorizerKubeconfig(s.Namespace, set.Bundle(constants.SecretNameCACluster))
		if err != nil {
			return v, err
		}
		v.NodeAgents = &kubeapiserver.NodeAgents{Kubeconfig: agents}
	}
	return v, nil
}

// Encryption returns which resources are encrypted with which keys: the new one, and while a rotation is prepared, the old one for reading.
func (s Source) Encryption() (encryption.Values, error) {
	set, err := s.Credentials.All()
	if err != nil {
		return encryption.Values{}, err
	}
	desired, former := observed.EncryptedResources(s.Shoot)
	e := encryption.Values{Resources: append([]string{"secrets"}, desired...), PlainResources: former}
	provider := corev1beta1.EncryptionProviderType("")
	if c := s.Shoot.Spec.Kubernetes.KubeAPIServer; c != nil && c.EncryptionConfig != nil {
		provider = ptr.Deref(c.EncryptionConfig.Provider.Type, "")
	}
	for _, secret := range []*corev1.Secret{set.Current(constants.SecretNameETCDEncryptionKey), set.Old(constants.SecretNameETCDEncryptionKey)} {
		if secret == nil {
			continue
		}
		key := encryption.Key{
			Provider: provider, Name: string(secret.Data[secrets.DataKeyEncryptionKeyName]), Secret: secret.Data[secrets.DataKeyEncryptionSecret],
		}
		if key.Provider == "" {
			key.Provider = corev1beta1.EncryptionProviderType(secret.Data[secrets.DataKeyEncryptionProvider])
		}
		e.Keys = append(e.Keys, key)
	}
	return e, nil
}

// FormerEncryption returns the encryption that writes as before this run, and reads what is written after it.
func (s Source) FormerEncryption() (encryption.Values, error) {
	e, err := s.Encryption()
	if err != nil {
		return e, err
	}
	if s.PreparesEncryptionKey() {
		slices.Reverse(e.Keys)
	}
	added := observed.AddedResources(s.Shoot)
	e.Resources, e.PlainResources = observed.Without(e.Resources, added), append(e.PlainResources, added...)
	return e, nil
}

// EncryptionMark names the encryption after this run. The same resources may be added, removed and added again: each time is another one.
func (s Source) EncryptionMark() (string, error) {
	e, err := s.Encryption()
	if err != nil {
		return "", err
	}
	mark := e.Keys[0].Name
	if len(observed.AddedResources(s.Shoot)) > 0 {
		mark += fmt.Sprintf("/%d", s.Shoot.Generation)
	}
	return mark, nil
}
