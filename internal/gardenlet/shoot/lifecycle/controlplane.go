package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/component/apiserverproxy"
	"gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/kubecontrollermanager"
	"gardener.cloud/gardener/internal/component/kubescheduler"
	"gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/component/shootaccess"
	"gardener.cloud/gardener/internal/component/systemcomponent"
	"gardener.cloud/gardener/internal/component/vpnseedserver"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/gardenlet/managed"
	"gardener.cloud/gardener/internal/gardenlet/shoot/credentials"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/kube/shard"
	"gardener.cloud/gardener/internal/tokenrequestor"
	"gardener.cloud/gardener/pkg/flow"
	"gardener.cloud/gardener/pkg/secrets"
)

// storage are the tasks for what keeps the state of the cluster.
func (h *hosted) storage() []flow.Task {
	main := task("etcd-main", "Ordering the main etcd", func(ctx context.Context) error {
		return h.orderEtcd(ctx, etcd.Main, h.replicas(h.members()))
	}, "credentials-etcd")
	main.AfterIfPresent = []string{"backup-entry"}
	tasks := []flow.Task{
		main,
		task("etcd-events", "Ordering the etcd for events", func(ctx context.Context) error {
			return h.orderEtcd(ctx, etcd.Events, h.replicas(h.members()))
		}, "credentials-etcd"),
		lasting(podsTimeout, task("etcd-main-ready", "Waiting for the main etcd", h.etcdReady(etcd.Main), "etcd-main")),
		lasting(podsTimeout, task("etcd-events-ready", "Waiting for the etcd for events", h.etcdReady(etcd.Events), "etcd-events")),
	}
	if h.seed.Spec.Backup != nil {
		tasks = append(tasks, lasting(extensionTimeout, task("backup-entry", "Preparing backups", func(ctx context.Context) error {
			return h.orderBackup(ctx, h.world)
			// The extension writes the credentials of etcd into the namespace, and nothing if there is none.
		}, "namespace", "cluster")))
	}
	return tasks
}

// orderEtcd writes what an etcd cluster is to be like. Of one that is there already, etcd-druid has to be told to act on what has changed.
func (h *hosted) orderEtcd(ctx context.Context, role etcd.Role, replicas int32) error {
	if err := h.apply(ctx, etcd.Objects(h.etcdValues(role, replicas))...); err != nil {
		return err
	}
	current := &druidv1alpha1.Etcd{}
	if err := h.SeedClient.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: etcd.Name(role)}, current); err != nil {
		return fmt.Errorf("read Etcd %q: %w", etcd.Name(role), err)
	}
	if observed := current.Status.ObservedGeneration; observed != nil && *observed == current.Generation {
		return nil
	}
	return kube.PatchMetadata(ctx, h.SeedClient, current, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, druidv1alpha1.DruidOperationAnnotation, druidv1alpha1.DruidOperationReconcile)
	})
}

// members is how many members an etcd cluster has.
func (w *world) members() int32 {
	if tolerance(w.shoot) == "" {
		return 1
	}
	return 3
}

// pods is how many pods a component has that all work.
func (w *world) pods() int32 {
	if tolerance(w.shoot) == "" {
		return 1
	}
	return 2
}

// spread is what pods of one component must not share.
func (w *world) spread() []string {
	switch tolerance(w.shoot) {
	case corev1beta1.FailureToleranceTypeNode:
		return []string{corev1.LabelHostname}
	case corev1beta1.FailureToleranceTypeZone:
		return []string{corev1.LabelHostname, corev1.LabelTopologyZone}
	}
	return nil
}

// replicas is how many pods run of those that there are when the cluster is awake.
func (h *hosted) replicas(awake int32) int32 {
	if h.asleep {
		return 0
	}
	return awake
}

func (h *hosted) etcdValues(role etcd.Role, replicas int32) etcd.Values {
	v := etcd.Values{
		Namespace: h.namespace, Role: role, Replicas: replicas, Spread: h.spread(),
		Secrets: etcd.Secrets{
			CA: h.set.BundleName(constants.SecretNameCAETCD), PeerCA: h.set.BundleName(constants.SecretNameCAETCDPeer),
			Server: h.set.Name(credentials.EtcdServer), Client: h.set.Name(credentials.EtcdClient), PeerServer: h.set.Name(credentials.EtcdPeerServer),
		},
	}
	if volume := h.seed.Spec.Volume; volume != nil {
		for _, provider := range volume.Providers {
			if provider.Purpose == "etcd-"+string(role) {
				v.StorageClass = provider.Name
			}
		}
		if volume.MinimumSize != nil {
			v.StorageCapacity = volume.MinimumSize.String()
		}
	}
	if workload.Autoscaled(h.seed) {
		autoscaling := h.cautious()
		v.Autoscaling = &autoscaling
	}
	v.MinAllowed = etcdMinimum(h.shoot, role)
	if backup := h.seed.Spec.Backup; backup != nil && role == etcd.Main {
		v.Backup = &etcd.Backup{
			Provider: backup.Provider, Container: string(h.seed.UID), Prefix: backupEntryName(h.world), SecretName: constants.BackupSecretName,
			FullSnapshotSchedule: h.snapshotSchedule(),
		}
	}
	return v
}

// snapshotSchedule is once a day at a time of its own: in the first hour of the maintenance time window, if there is one.
func (w *world) snapshotSchedule() string {
	begin, length, ok := window(w.shoot, time.Time{})
	if !ok {
		begin, length = time.Time{}, 24*time.Hour
	} else {
		length = min(length, time.Hour)
	}
	at := begin.UTC().Add(time.Duration(shard.Of(w.shoot.UID, uint64(length)))) //nolint:gosec // less than a duration
	return fmt.Sprintf("%d %d * * *", at.Minute(), at.Hour())
}

func (h *hosted) etcdReady(role etcd.Role) func(context.Context) error {
	return func(ctx context.Context) error {
		if h.asleep {
			return nil
		}
		healthy := etcdHealthy
		if h.shoot.DeletionTimestamp != nil {
			healthy = etcdServes // a change that some members never get must not keep a shoot from going
		}
		return awaitOne(ctx, h.SeedClient, h.namespace, etcd.Name(role), &druidv1alpha1.EtcdList{}, healthy)
	}
}

// etcdHealthy returns why an Etcd is not ready, or nil if it is: it serves its clients, and all members have the last change.
func etcdHealthy(e *druidv1alpha1.Etcd) error {
	if err := etcdServes(e); err != nil {
		return err
	}
	for _, c := range e.Status.Conditions { // an older etcd-druid does not say it
		if c.Type == druidv1alpha1.ConditionTypeAllMembersUpdated && c.Status != druidv1alpha1.ConditionTrue {
			return fmt.Errorf("Etcd %q: %s", e.Name, c.Message)
		}
	}
	return nil
}

// etcdServes returns why an Etcd does not serve its clients, or nil if it does.
func etcdServes(e *druidv1alpha1.Etcd) error {
	switch s := e.Status; {
	case s.ObservedGeneration == nil || *s.ObservedGeneration != e.Generation:
		return fmt.Errorf("Etcd %q: etcd-druid has not seen its last change", e.Name)
	case len(s.LastErrors) > 0:
		return fmt.Errorf("Etcd %q: %s", e.Name, s.LastErrors[0].Description)
	case s.Ready == nil || !*s.Ready:
		return fmt.Errorf("Etcd %q: %d of %d members are ready", e.Name, s.ReadyReplicas, e.Spec.Replicas)
	}
	return nil
}

// apiServer are the tasks for the kube-apiserver. Its pods are created together with those of etcd: they wait for it by themselves.
func (h *hosted) apiServer() []flow.Task {
	deploy := task("kube-apiserver", "Deploying the API server", func(ctx context.Context) error {
		return h.deployAPIServer(ctx, h.replicas(h.pods()))
	}, "credentials")
	deploy.AfterIfPresent = append(h.beforeAPIServer(), "reencrypted-saved") // then the old key is not needed any more
	if replacesAuthorities(h.shoot) {
		// An etcd that does not know the new authority yet refuses an API server that comes with its certificate.
		deploy.After = append(deploy.After, "etcd-main-ready", "etcd-events-ready")
	}
	tasks := []flow.Task{
		deploy,
		lasting(podsTimeout, task("kube-apiserver-ready", "Waiting for the API server", func(ctx context.Context) error {
			if h.asleep {
				return nil
			}
			return h.deploymentReady(ctx, kubeapiserver.Name)
		}, "kube-apiserver")),
	}
	if preparesAccountKey(h.shoot) || preparesEncryptionKey(h.shoot) || changesEncryption(h.shoot) {
		tasks = append(tasks, lasting(podsTimeout, task("old-kube-apiserver-gone", "Waiting until no API server uses an old key", h.oldAPIServersGone, "kube-apiserver-ready")))
	}
	return tasks
}

// oldAPIServersGone waits until no API server works with what it was given before.
func (h *hosted) oldAPIServersGone(ctx context.Context) error {
	return h.oldPodsGone(ctx, kubeapiserver.Labels())
}

// oldPodsGone waits until the pods have ended that a Deployment, which is ready, has replaced: they go on for a while.
func (h *hosted) oldPodsGone(ctx context.Context, labels map[string]string) error {
	return kube.Await(ctx, h.SeedClient, &corev1.PodList{}, func(pods []*corev1.Pod) error {
		for _, pod := range pods {
			if pod.DeletionTimestamp != nil {
				return fmt.Errorf("Pod %q has not ended yet", pod.Name)
			}
		}
		return nil
	}, nil, client.InNamespace(h.namespace), client.MatchingLabels(labels))
}

// preparesAccountKey is whether this run changes by which key tokens are signed.
func preparesAccountKey(shoot *corev1beta1.Shoot) bool {
	c := shoot.Status.Credentials
	if c == nil || c.Rotation == nil || c.Rotation.ServiceAccountKey == nil {
		return false
	}
	phase := c.Rotation.ServiceAccountKey.Phase
	return phase == corev1beta1.RotationPreparing || phase == corev1beta1.RotationPreparingWithoutWorkersRollout
}

// replacesAuthorities is whether this run changes whom etcd and its clients trust.
func replacesAuthorities(shoot *corev1beta1.Shoot) bool {
	c := shoot.Status.Credentials
	if c == nil || c.Rotation == nil || c.Rotation.CertificateAuthorities == nil {
		return false
	}
	switch c.Rotation.CertificateAuthorities.Phase {
	case corev1beta1.RotationPreparing, corev1beta1.RotationPreparingWithoutWorkersRollout, corev1beta1.RotationCompleting:
		return true
	case corev1beta1.RotationWaitingForWorkersRollout, corev1beta1.RotationPrepared, corev1beta1.RotationCompleted:
	}
	return false
}

func (h *hosted) deployAPIServer(ctx context.Context, replicas int32) error {
	values, err := h.apiServerValues(ctx, replicas)
	if err != nil {
		return err
	}
	objects, err := kubeapiserver.Objects(values)
	if err != nil {
		return err
	}
	return h.apply(ctx, objects...)
}

func (h *hosted) apiServerValues(ctx context.Context, replicas int32) (kubeapiserver.Values, error) {
	kubernetes := h.shoot.Spec.Kubernetes
	image, err := h.image("kube-apiserver")
	if err != nil {
		return kubeapiserver.Values{}, err
	}
	v := kubeapiserver.Values{
		Namespace: h.namespace, Image: image, Version: kubernetes.Version, Replicas: replicas, Spread: h.spread(), Workerless: h.workerless(),
		Config: kubernetes.KubeAPIServer, ServiceNetworks: networks(h.shoot, func(n *corev1beta1.NetworkingStatus) []string { return n.Services }),
		Issuer: defaultIssuer(h.world),
		Secrets: kubeapiserver.Secrets{
			ClientCA: h.set.BundleName(constants.SecretNameCAClient), EtcdCA: h.set.BundleName(constants.SecretNameCAETCD),
			FrontProxyCA: h.set.BundleName(constants.SecretNameCAFrontProxy), KubeletCA: h.set.BundleName(constants.SecretNameCAKubelet),
			Server: h.set.Name(credentials.KubeAPIServer), EtcdClient: h.set.Name(credentials.EtcdClient),
			KubeletClient: h.set.Name(credentials.KubeAPIServerKubelet), Aggregator: h.set.Name(credentials.KubeAggregator),
			ServiceAccountKey: h.set.Name(constants.SecretNameServiceAccountKey), ServiceAccountKeys: h.set.BundleName(constants.SecretNameServiceAccountKey),
		},
		Encryption: h.encryption(),
	}
	if h.issuer != "" { // tokens that the API server has issued itself stay good
		v.Issuer, v.JWKSURI, v.AcceptedIssuers = h.issuer, keySetURL(h.issuer), []string{defaultIssuer(h.world)}
	}
	if hosts := h.hosts(); len(hosts) > 0 {
		v.ExternalHostname = hosts[0]
	}
	ranges, err := systemcomponent.NetworksOf(h.shoot)
	if err != nil {
		return v, err
	}
	if !h.workerless() || ranges.PreferIPv6() { // the pod's own address may be of another family
		v.AdvertiseAddress = apiserverproxy.AdvertiseAddress(ranges).String()
	}
	if !h.workerless() {
		v.Tunnel = vpnseedserver.Tunnel(h.set.Name(credentials.HTTPProxyClient), h.set.BundleName(constants.SecretNameCAVPN))
		agents, err := resourcemanager.AuthorizerKubeconfig(h.namespace, h.set.Bundle(constants.SecretNameCACluster))
		if err != nil {
			return v, err
		}
		v.NodeAgents = &kubeapiserver.NodeAgents{Kubeconfig: agents}
	}
	if encryptsAnew(h.shoot) {
		if known, err := h.encryptionKnown(ctx); err != nil {
			return v, err
		} else if !known {
			v.Encryption = h.oldEncryption()
		}
	}
	v.Files, err = h.apiServerFiles(ctx)
	return v, err
}

// encryption says by which keys what is encrypted: the new one, and while a rotation is prepared, the old one to read.
func (h *hosted) encryption() kubeapiserver.Encryption {
	wanted, former := encryptedResources(h.shoot)
	e := kubeapiserver.Encryption{Resources: append([]string{"secrets"}, wanted...), PlainResources: former}
	provider := corev1beta1.EncryptionProviderType("")
	if c := h.shoot.Spec.Kubernetes.KubeAPIServer; c != nil && c.EncryptionConfig != nil {
		provider = deref(c.EncryptionConfig.Provider.Type)
	}
	for _, secret := range []*corev1.Secret{h.set.Current(constants.SecretNameETCDEncryptionKey), h.set.Old(constants.SecretNameETCDEncryptionKey)} {
		if secret == nil {
			continue
		}
		key := kubeapiserver.EncryptionKey{
			Provider: provider, Name: string(secret.Data[secrets.DataKeyEncryptionKeyName]), Secret: secret.Data[secrets.DataKeyEncryptionSecret],
		}
		if key.Provider == "" {
			key.Provider = corev1beta1.EncryptionProviderType(secret.Data[secrets.DataKeyEncryptionProvider])
		}
		e.Keys = append(e.Keys, key)
	}
	return e
}

// networks are ranges of a cluster. The status has them all, as an infrastructure may have chosen some.
func networks(shoot *corev1beta1.Shoot, of func(*corev1beta1.NetworkingStatus) []string) []string {
	if shoot.Status.Networking == nil {
		return nil
	}
	return of(shoot.Status.Networking)
}

// image finds the image of a component of Kubernetes in the version of the cluster.
func (h *hosted) image(name string) (string, error) {
	image, err := h.Images.Find(name, imagevector.Query{TargetVersion: h.shoot.Spec.Kubernetes.Version})
	return image.String(), err
}

// gardenerImage is the image with all our processes.
func (h *hosted) gardenerImage() (string, error) {
	image, err := h.Images.Find("gardener", imagevector.Query{})
	return image.WithDefaultTag(h.Gardener.Version).String(), err
}

func (h *hosted) deploymentReady(ctx context.Context, name string) error {
	return awaitOne(ctx, h.SeedClient, h.namespace, name, &appsv1.DeploymentList{}, kube.DeploymentHealthy)
}

// awaitOne waits until one object passes a check.
func awaitOne[T client.Object](ctx context.Context, c client.WithWatch, namespace, name string, list client.ObjectList, check func(T) error) error {
	return kube.Await(ctx, c, list, func(objects []T) error {
		if len(objects) == 0 {
			return fmt.Errorf("%q is not there", name)
		}
		return check(objects[0])
	}, nil, client.InNamespace(namespace), client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", name)})
}

// controllers are the tasks for what works with the API server. Their pods start when there are tokens for them: before, they would only
// be tried again and again, later and later.
func (h *hosted) controllers() []flow.Task {
	tokens := task("tokens", "Making the first tokens", h.makeTokens, "access-secrets", "kube-apiserver-ready")
	tokens.AfterIfPresent = []string{"old-kube-apiserver-gone"} // it would sign with the old key
	tasks := []flow.Task{
		task("access-secrets", "Ordering tokens", func(ctx context.Context) error {
			orders, err := h.accessSecrets(ctx)
			if err != nil {
				return err
			}
			return h.apply(ctx, orders...)
		}, "credentials"),
		tokens,
		task("resource-manager", "Deploying the resource manager", func(ctx context.Context) error {
			return h.deployResourceManager(ctx, h.pods())
		}, "tokens"),
		lasting(podsTimeout, task("resource-manager-ready", "Waiting for the resource manager", func(ctx context.Context) error {
			return h.deploymentReady(ctx, resourcemanager.Name)
		}, "resource-manager")),
		task("kube-controller-manager", "Deploying the controller manager", func(ctx context.Context) error {
			return h.deployControllerManager(ctx, h.pods())
		}, "tokens"),
		lasting(podsTimeout, task("kube-controller-manager-ready", "Waiting for the controller manager", func(ctx context.Context) error {
			return h.deploymentReady(ctx, kubecontrollermanager.Name)
		}, "kube-controller-manager")),
	}
	if h.workerless() {
		return tasks
	}
	return append(tasks,
		task("kube-scheduler", "Deploying the scheduler", func(ctx context.Context) error {
			return h.deployScheduler(ctx, h.pods())
		}, "tokens"),
		lasting(podsTimeout, task("kube-scheduler-ready", "Waiting for the scheduler", func(ctx context.Context) error {
			return h.deploymentReady(ctx, kubescheduler.Name)
		}, "kube-scheduler")),
	)
}

// accessSecrets are the orders for tokens of what runs in every control plane, and of what extensions and the gardenlet use. A token that
// is within a kubeconfig stays there: its users have no other until the resource manager has seen that it is missing.
func (h *hosted) accessSecrets(ctx context.Context) ([]client.Object, error) {
	names := []string{kubecontrollermanager.Name, resourcemanager.Name}
	if !h.workerless() {
		names = append(names, kubescheduler.Name)
	}
	objects := make([]client.Object, 0, len(names)+2)
	for _, name := range names {
		objects = append(objects, shootaccess.Secret(h.namespace, name))
	}
	bundle := h.set.Bundle(constants.SecretNameCACluster)
	for name, server := range map[string]string{
		constants.SecretNameGardener:         "https://" + strings.Join(slices.Concat(h.hosts(), []string{h.inSeed()})[:1], ""),
		constants.SecretNameGardenerInternal: "https://" + h.inSeed(),
	} {
		secret := shootaccess.Secret(h.namespace, constants.SecretNameGardener)
		secret.Name = name
		before := &corev1.Secret{}
		if err := h.SeedClient.Get(ctx, client.ObjectKeyFromObject(secret), before); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read Secret %q: %w", name, err)
		}
		token, err := tokenrequestor.TokenIn(before)
		if err != nil {
			token = "" // what nobody can read is written anew
		}
		secret.ResourceVersion = before.ResourceVersion // a token that is renewed right now must not be lost
		secret.Data = map[string][]byte{resourcesv1alpha1.DataKeyKubeconfig: kubeconfig(h.namespace, server, bundle, token)}
		objects = append(objects, secret)
	}
	return objects, nil
}

// inSeed is the host of the API server in the seed.
func (w *world) inSeed() string { return kubeapiserver.Name + "." + w.namespace + ".svc" }

// makeTokens fills the orders for tokens that are not filled yet. Later, the resource manager does: as it has to have one first, and as
// the others need not wait for it, these are made here. So are those that replace tokens of a key which is, or will be, trusted no more:
// without its own, the resource manager cannot ask for any.
func (h *hosted) makeTokens(ctx context.Context) error {
	access, err := h.connect(ctx)
	if err != nil {
		return err
	}
	if err := h.grant(ctx, access); err != nil {
		return err
	}
	orders := &corev1.SecretList{}
	if err := h.SeedClient.List(ctx, orders, client.InNamespace(h.namespace), client.MatchingLabels{
		resourcesv1alpha1.ResourceManagerPurpose: resourcesv1alpha1.LabelPurposeTokenRequest,
		resourcesv1alpha1.ResourceManagerClass:   resourcesv1alpha1.ResourceManagerClassShoot,
	}); err != nil {
		return fmt.Errorf("list orders for tokens: %w", err)
	}
	public, err := publicKey(h.set.Current(constants.SecretNameServiceAccountKey))
	if err != nil {
		return err
	}
	current, err := keyOf(public)
	if err != nil {
		return err
	}
	good := func(token string) bool { return signedBy(token, current.ID) }
	requestor := tokenrequestor.New(h.SeedClient, access, h.set.Bundle(constants.SecretNameCACluster), tokenrequestor.Values{
		Class: resourcesv1alpha1.ResourceManagerClassShoot, Clock: h.Clock, Good: good,
	})
	var fill []func(context.Context) error
	for _, order := range orders.Items {
		if token, err := tokenrequestor.TokenIn(&order); err == nil && good(token) && !h.expired(&order) {
			continue
		}
		fill = append(fill, func(ctx context.Context) error {
			_, err := requestor.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&order)})
			return err
		})
	}
	return flow.Parallel(ctx, fill...)
}

// expired is whether a token was never made, or was due some time ago: the resource manager could not renew it, as after a hibernation.
func (h *hosted) expired(order *corev1.Secret) bool {
	due, err := parseTime(order.Annotations[resourcesv1alpha1.ServiceAccountTokenRenewTimestamp])
	return err != nil || h.Clock.Now().After(due)
}

// connect returns a client for the shoot, which may do everything.
func (h *hosted) connect(ctx context.Context) (client.WithWatch, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shootClient != nil {
		return h.shootClient, nil
	}
	secret, err := h.set.Kubeconfig(ctx, accessName, "gardener.cloud:gardenlet", []string{"system:masters"}, "https://"+h.inSeed(), accessLife)
	if err != nil {
		return nil, fmt.Errorf("make access to the shoot: %w", err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[secrets.DataKeyKubeconfig])
	if err != nil {
		return nil, errors.New("the kubeconfig for the shoot is not usable")
	}
	h.shootConfig = config
	h.shootClient, err = h.Connect(config)
	return h.shootClient, err
}

// discover returns which kinds of objects the API server of the shoot serves. All tasks of a run see the same.
func (h *hosted) discover(ctx context.Context) ([]*metav1.APIResourceList, error) {
	if _, err := h.connect(ctx); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.served != nil {
		return h.served, nil
	}
	served, err := h.Discover(h.shootConfig)
	if err != nil {
		return nil, fmt.Errorf("find out what the API server of the shoot serves: %w", err)
	}
	h.served = served
	return served, nil
}

func (h *hosted) deployResourceManager(ctx context.Context, replicas int32) error {
	values, err := h.resourceManagerValues(replicas)
	if err != nil {
		return err
	}
	objects, err := resourcemanager.Objects(values)
	if err != nil {
		return err
	}
	return h.apply(ctx, objects...)
}

func (h *hosted) resourceManagerValues(replicas int32) (resourcemanager.Values, error) {
	image, err := h.gardenerImage()
	if err != nil {
		return resourcemanager.Values{}, err
	}
	options := resourcemanager.ShootOptions{
		Namespace: h.namespace, ClusterIdentity: deref(h.seed.Status.ClusterIdentity), Workerless: h.workerless(),
		SystemComponentsTolerations: systemTolerations(h.shoot),
	}
	if hosts := h.hosts(); len(hosts) > 0 {
		options.APIServerHost = hosts[0]
	}
	if kubescheduler.BinPacking(h.shoot.Spec.Kubernetes.KubeScheduler) {
		options.SchedulerName = kubescheduler.BinPackingSchedulerName
	}
	if system := h.shoot.Spec.Kubernetes.KubeAPIServer; system != nil {
		options.DefaultNotReadyTolerationSeconds, options.DefaultUnreachableTolerationSeconds = system.DefaultNotReadyTolerationSeconds, system.DefaultUnreachableTolerationSeconds
	}
	return resourcemanager.Values{
		Namespace: h.namespace, Image: image, Replicas: replicas, Config: resourcemanager.ForShoot(options),
		ServerSecret: h.set.Name(credentials.ResourceManager), CABundle: h.set.Bundle(constants.SecretNameCACluster),
		Shoot: &resourcemanager.Shoot{GenericKubeconfig: h.set.Name(constants.SecretNameGenericTokenKubeconfig)},
	}, nil
}

func (h *hosted) deployControllerManager(ctx context.Context, replicas int32) error {
	image, err := h.image(kubecontrollermanager.Name)
	if err != nil {
		return err
	}
	objects, err := kubecontrollermanager.Objects(kubecontrollermanager.Values{
		Namespace: h.namespace, Image: image, Replicas: replicas, Spread: h.spread(), Workerless: h.workerless(),
		Config: h.shoot.Spec.Kubernetes.KubeControllerManager, ClusterName: h.namespace,
		PodNetworks:     networks(h.shoot, func(n *corev1beta1.NetworkingStatus) []string { return n.Pods }),
		ServiceNetworks: networks(h.shoot, func(n *corev1beta1.NetworkingStatus) []string { return n.Services }),
		Secrets: kubecontrollermanager.Secrets{
			GenericKubeconfig: h.set.Name(constants.SecretNameGenericTokenKubeconfig), Server: h.set.Name(credentials.KubeControllerManager),
			CA: h.set.BundleName(constants.SecretNameCACluster), ClientCA: h.set.Name(constants.SecretNameCAClient),
			KubeletCA: h.set.Name(constants.SecretNameCAKubelet), ServiceAccountKey: h.set.Name(constants.SecretNameServiceAccountKey),
		},
	})
	if err != nil {
		return err
	}
	return h.apply(ctx, objects...)
}

func (h *hosted) deployScheduler(ctx context.Context, replicas int32) error {
	image, err := h.image(kubescheduler.Name)
	if err != nil {
		return err
	}
	objects, err := kubescheduler.Objects(kubescheduler.Values{
		Namespace: h.namespace, Image: image, Replicas: replicas, Spread: h.spread(), Config: h.shoot.Spec.Kubernetes.KubeScheduler,
		Secrets: kubescheduler.Secrets{
			GenericKubeconfig: h.set.Name(constants.SecretNameGenericTokenKubeconfig), Server: h.set.Name(credentials.KubeScheduler),
		},
	})
	if err != nil {
		return err
	}
	return h.apply(ctx, objects...)
}

// announceKubeconfig tells extensions which kubeconfig pods of the control plane share.
func (h *hosted) announceKubeconfig(ctx context.Context) error {
	cluster := &extensionsv1alpha1.Cluster{}
	if err := h.SeedClient.Get(ctx, client.ObjectKey{Name: h.namespace}, cluster); err != nil {
		return fmt.Errorf("read Cluster %q: %w", h.namespace, err)
	}
	return kube.PatchMetadata(ctx, h.SeedClient, cluster, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, genericKubeconfigAnnotation, h.set.Name(constants.SecretNameGenericTokenKubeconfig))
	})
}

// applied waits until the objects of a ManagedResource are in the shoot.
func (h *hosted) applied(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		return awaitOne(ctx, h.SeedClient, h.namespace, name, &resourcesv1alpha1.ManagedResourceList{}, managed.Applied)
	}
}
