package landscape

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/example"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/landscape/host"
)

const (
	// hostPrefix begins the names of servers: no cluster is named like it, whose machines would have the same names.
	hostPrefix = "host"
	// maxHosts is how many servers a landscape has room for. Their addresses are the last ones of those for machines.
	maxHosts = 20
	// hostsType is the type of the provider whose machines are servers that exist.
	hostsType = "hosts"
	// hostsTimeout is how long provider-hosts may take to be installed, and to check the servers.
	hostsTimeout = 5 * time.Minute
	// hostMachineType and hostZone are those of example/hosts.
	hostMachineType, hostZone = "server", "0"
	// hostsKey is the Secret with the key that logs in on servers.
	hostsKey = "hosts-key"
)

// hosts are the servers of the landscape, which belong to no cluster.
func (s *state) hosts() []Machine {
	var all []Machine
	for i := range s.Hosts {
		all = append(all, Machine{Name: hostPrefix + "-" + strconv.Itoa(i), Number: host.MaxMachines - 1 - i})
	}
	return all
}

// planHosts returns how many servers there will be. Fewer than before are refused: they may be machines of a shoot.
func planHosts(have, want int) (int, error) {
	switch {
	case want == 0:
		return have, nil
	case want < have:
		return 0, fmt.Errorf("the landscape has %d hosts, which may be machines of shoots, and cannot have %d: take it down first", have, want)
	case want > maxHosts:
		return 0, fmt.Errorf("a landscape has room for %d hosts, not %d", maxHosts, want)
	}
	return want, nil
}

// bringUpHosts starts servers, installs provider-hosts, and enters the servers into its inventory in the seed of the runtime cluster.
func (u *upRun) bringUpHosts(ctx context.Context) error {
	image, err := u.artifacts.image("machine")
	if err != nil {
		return err
	}
	var hosts []client.Object
	for _, machine := range u.state.hosts() {
		if err := u.step(ctx, "Booting server "+machine.Name, machine.Name, func(ctx context.Context, _ func(string)) error {
			ctx, cancel := u.limit(ctx, bootTimeout)
			defer cancel()
			object, err := u.ensureHost(ctx, machine, image.Reference)
			hosts = append(hosts, object)
			return err
		}); err != nil {
			return err
		}
	}
	return u.step(ctx, "Entering servers into the inventory of provider-hosts", "", func(ctx context.Context, detail func(string)) error {
		ctx, cancel := u.limit(ctx, hostsTimeout)
		defer cancel()
		return u.enterHosts(ctx, hosts, func(reason error) { detail(reason.Error()) })
	})
}

// ensureHost starts a server, and returns it as the inventory has it.
func (u *upRun) ensureHost(ctx context.Context, machine Machine, image string) (*hostsv1alpha1.Host, error) {
	userData, err := render("host.sh.tmpl", map[string]any{"Mirrors": u.mirrors(), "Registry": u.registryAddress()})
	if err != nil {
		return nil, err
	}
	login, err := ensureKey(u.hostsKeyFile())
	if err != nil {
		return nil, err
	}
	dir := u.userDataDir(machine.Name)
	key, err := ensureKey(filepath.Join(dir, "ssh_host_ed25519_key"))
	if err != nil {
		return nil, err
	}
	if err := errors.Join(
		host.WriteFile(filepath.Join(dir, "userdata"), userData, 0o755),
		host.WriteFile(filepath.Join(dir, "authorized_keys"), []byte(login), 0o600),
	); err != nil {
		return nil, err
	}
	mounts, err := u.machineMounts(machine, "containerd", "kubelet")
	if err != nil {
		return nil, err
	}
	return &hostsv1alpha1.Host{
		ObjectMeta: metav1.ObjectMeta{Name: machine.Name},
		Spec: hostsv1alpha1.HostSpec{
			Address: u.network().Machine(machine.Number).String(), HostKey: key, MachineType: hostMachineType, Zone: hostZone,
			KeySecretRef: corev1.SecretReference{Namespace: constants.GardenNamespace, Name: hostsKey},
		},
	}, u.bootMachine(ctx, u.client, machine, image, mounts)
}

func (l *Landscape) hostsKeyFile() string { return filepath.Join(l.Dir, "hosts", "id_ed25519") }

// ensureKey creates an SSH key unless the file has one, and returns the public key as a line.
func ensureKey(file string) (public string, err error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return "", err
		}
		block, err := ssh.MarshalPrivateKey(key, "")
		if err != nil {
			return "", err
		}
		data = pem.EncodeToMemory(block)
		if err := host.WriteFile(file, data, 0o600); err != nil {
			return "", err
		}
	} else if err != nil {
		return "", err
	}
	signer, err := ssh.ParsePrivateKey(data)
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return string(ssh.MarshalAuthorizedKey(signer.PublicKey())), nil
}

// enterHosts installs provider-hosts in seeds, creates what Shoots refer to, and returns when all servers have been checked.
func (u *upRun) enterHosts(ctx context.Context, hosts []client.Object, report func(error)) error {
	chart, err := u.pushChart(ctx, charts.ProviderHosts)
	if err != nil {
		return err
	}
	extension, err := hostsExtension(chart, u.image)
	if err != nil {
		return err
	}
	samples, err := u.hostSamples()
	if err != nil {
		return err
	}
	garden, err := u.Client(VirtualGarden)
	if err != nil {
		return err
	}
	seed, err := u.Client(RuntimeCluster)
	if err != nil {
		return err
	}
	registered := retryReplaced(func() error { return kube.Apply(ctx, seed, fieldOwner, extension) })
	if err := errors.Join(registered, applyToGarden(ctx, garden, samples...)); err != nil {
		return err
	}
	if err := kube.Await(ctx, seed, &apiextensionsv1.CustomResourceDefinitionList{}, inventoryServed, report); err != nil {
		return err
	}
	key, err := os.ReadFile(u.hostsKeyFile())
	if err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: hostsKey}, Type: corev1.SecretTypeSSHAuth,
		Data: map[string][]byte{corev1.SSHAuthPrivateKey: key},
	}
	if err := retryReplaced(func() error { return kube.Apply(ctx, seed, fieldOwner, append([]client.Object{secret}, hosts...)...) }); err != nil {
		return err
	}
	return kube.Await(ctx, seed, &hostsv1alpha1.HostList{}, func(found []*hostsv1alpha1.Host) error { return hostsChecked(found, len(hosts)) }, report)
}

// inventoryServed returns why the seed does not serve Hosts yet, or nil if it does.
func inventoryServed(found []*apiextensionsv1.CustomResourceDefinition) error {
	for _, definition := range found {
		if definition.Spec.Group == hostsv1alpha1.GroupName && definition.Spec.Names.Kind == "Host" &&
			slices.ContainsFunc(definition.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
				return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
			}) {
			return nil
		}
	}
	return errors.New("the seed does not serve Hosts yet: provider-hosts is being installed")
}

// hostsChecked returns why not all servers are usable, or nil if they are.
func hostsChecked(hosts []*hostsv1alpha1.Host, want int) error {
	if len(hosts) < want {
		return fmt.Errorf("the inventory has %d of %d hosts", len(hosts), want)
	}
	for _, h := range hosts {
		switch h.Status.Phase {
		case hostsv1alpha1.HostAvailable, hostsv1alpha1.HostClaimed, hostsv1alpha1.HostCleaning:
		default:
			return fmt.Errorf("Host %q is %s: %s", h.Name, h.Status.Phase, h.Status.Message)
		}
	}
	return nil
}

// hostsExtension is the Extension of provider-hosts. It is installed also without a shoot that needs it, as its definitions come with it.
func hostsExtension(chart, image string) (*operatorv1alpha1.Extension, error) {
	values, err := json.Marshal(map[string]any{"image": image})
	if err != nil {
		return nil, err
	}
	var resources []corev1beta1.ControllerResource
	for _, kind := range []string{"Infrastructure", "ControlPlane", "Worker"} {
		resources = append(resources, corev1beta1.ControllerResource{Kind: kind, Type: hostsType})
	}
	resources = append(resources, corev1beta1.ControllerResource{Kind: "OperatingSystemConfig", Type: "debian"})
	extension := extensionOf(charts.ProviderHosts, chart, resources, &apiextensionsv1.JSON{Raw: values}, nil)
	extension.Spec.Deployment.Extension.Policy = new(corev1beta1.ControllerDeploymentPolicyAlways)
	return extension, nil
}

// hostSamples are the objects that Shoots on servers refer to.
func (u *upRun) hostSamples() ([]client.Object, error) {
	objects, err := example.Objects(example.HostsCloudProfile, example.HostsCredentials)
	if err != nil {
		return nil, err
	}
	var all []client.Object
	for _, object := range objects {
		if object.GetKind() != "CloudProfile" {
			all = append(all, object)
			continue
		}
		profile, err := u.cloudProfile(object)
		if err != nil {
			return nil, err
		}
		all = append(all, profile)
	}
	return all, nil
}
