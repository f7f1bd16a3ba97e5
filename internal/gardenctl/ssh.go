package gardenctl

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/secrets"
)

const (
	// bastionTimeout is the default timeout for the start of a bastion, which is a machine.
	bastionTimeout = 10 * time.Minute
	// heartbeat is how often a bastion is kept alive. It is deleted an hour after the last time.
	heartbeat = 15 * time.Minute
	// nodeAccess is for how long the credentials are valid with which the address of a node is read.
	nodeAccess = 10 * time.Minute
	// sshUser is the user on bastions and nodes.
	sshUser = "gardener"
	// bastionPrefix is that of the names of bastions.
	bastionPrefix = "cli-"
)

// sshRequest are the flags of the command.
type sshRequest struct {
	cidrs              []string
	timeout, heartbeat time.Duration
	show               bool
}

func (c *cli) sshCommand() *cobra.Command {
	var r sshRequest
	cmd := &cobra.Command{
		Use: "ssh NODE [-- COMMAND...]", Short: "Log in to a node of a shoot through a bastion", Args: cobra.MinimumNArgs(1),
		Long: c.examples(`ssh my-node --shoot my-cluster
  PROGRAM ssh 10.250.0.4 -- journalctl -u kubelet    # of the targeted shoot; an address needs no access to the cluster
  PROGRAM ssh my-node --cidr=203.0.113.7/32          # from where you connect, if this computer has no public address
  PROGRAM ssh my-node --print                        # prints the command for another terminal`) + `
It creates a Bastion, with a key pair that is valid for it only, and deletes it when the connection ends. As long as it is in use, it is
kept alive. The program ssh has to be in a directory of $PATH.`,
		RunE: func(cmd *cobra.Command, args []string) error { return c.ssh(cmd.Context(), args[0], args[1:], r) },
	}
	cmd.Flags().StringSliceVar(&r.cidrs, "cidr", nil, "networks that may connect to the bastion (default: the address of this computer, if it is public)")
	cmd.Flags().DurationVar(&r.timeout, "timeout", bastionTimeout, "how long to wait for the bastion")
	cmd.Flags().DurationVar(&r.heartbeat, "heartbeat", heartbeat, "how often the bastion is kept alive; an hour after the last time it is deleted")
	cmd.Flags().BoolVar(&r.show, "print", false, "print the ssh command instead of running it, and keep the bastion until you interrupt the program")
	return cmd
}

func (c *cli) ssh(ctx context.Context, node string, command []string, r sshRequest) (err error) {
	if r.heartbeat <= 0 {
		return errors.New("--heartbeat must be longer than zero")
	}
	p, address, nodeKey, err := c.prepareSSH(ctx, node)
	if err != nil {
		return err
	}
	ingress, err := ingressOf(ctx, r.cidrs, p.config.Host)
	if err != nil {
		return err
	}
	publicKey, privateKey, err := newKeyPair()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "gardenctl-ssh-*") // only the user may enter it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	bastion := &operationsv1alpha1.Bastion{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, GenerateName: bastionPrefix},
		Spec: operationsv1alpha1.BastionSpec{
			ShootRef: corev1.LocalObjectReference{Name: p.name}, SSHPublicKey: publicKey, Ingress: ingress,
		},
	}
	if err := createBastion(ctx, p, bastion); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.deleteBastion(ctx, p, bastion)) }()
	fmt.Fprintf(c.ErrOut, "waiting for bastion %q\n", bastion.Name)
	if err := c.awaitBastion(ctx, p, bastion, r.timeout); err != nil {
		return err
	}
	host, err := hostOf(bastion.Status.Ingress)
	if err != nil {
		return err
	}
	config := filepath.Join(dir, "config")
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, "bastion"), privateKey, 0o600), os.WriteFile(filepath.Join(dir, "node"), nodeKey, 0o600),
		os.WriteFile(config, sshConfig(dir, host, address), 0o600),
	)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go c.keepAlive(ctx, p, bastion, r.heartbeat)
	if r.show {
		fmt.Fprintln(c.Out, strings.Join(append([]string{"ssh", "-F", config, "node"}, command...), " "))
		fmt.Fprintln(c.ErrOut, "the bastion is kept until you interrupt this program")
		<-ctx.Done()
		return nil
	}
	run := exec.CommandContext(ctx, "ssh", append([]string{"-F", config, "node"}, command...)...) //nolint:gosec // it is the user's own program
	run.Stdin, run.Stdout, run.Stderr = c.In, c.Out, c.ErrOut
	if err := run.Run(); err != nil {
		return fmt.Errorf("ssh: %w", err)
	}
	return nil
}

// prepareSSH returns the shoot, the address of a node, and the private key for its nodes. It changes nothing.
func (c *cli) prepareSSH(ctx context.Context, node string) (p *place, address string, key []byte, err error) {
	ctx, cancel := within(ctx, requestTimeout)
	defer cancel()
	if p, err = c.find(ctx, nil); err != nil {
		return nil, "", nil, err
	}
	shoot, err := c.read(ctx, p)
	if err != nil {
		return nil, "", nil, err
	}
	switch {
	case !shoot.Spec.Provider.SSHAccessEnabled():
		return nil, "", nil, fmt.Errorf("shoot %q has no nodes with SSH access; it is enabled by spec.provider.workersSettings.sshAccess", p.name)
	case shoot.Status.Hibernated:
		return nil, "", nil, fmt.Errorf("shoot %q is hibernated and has no nodes; use: %s wake shoot %s -n %s", p.name, c.program(), p.name, p.namespace)
	}
	secret := &corev1.Secret{}
	name := client.ObjectKey{Namespace: p.namespace, Name: p.name + "." + constants.ShootProjectSecretSuffixSSHKeypair}
	if err := p.client.Get(ctx, name, secret); err != nil {
		return nil, "", nil, fmt.Errorf("read the key for nodes in Secret %q: %w", name, err)
	}
	if key = secret.Data[secrets.DataKeyRSAPrivateKey]; len(key) == 0 {
		return nil, "", nil, fmt.Errorf("Secret %q has no key for nodes yet", name)
	}
	if address, err = c.nodeAddress(ctx, p, node); err != nil {
		return nil, "", nil, err
	}
	return p, address, key, nil
}

// nodeAddress returns the address of a node by its name, which the API server of the shoot knows, or the address itself.
func (c *cli) nodeAddress(ctx context.Context, p *place, node string) (string, error) {
	if ip := net.ParseIP(node); ip != nil {
		return ip.String(), nil
	}
	kubeconfig, _, err := c.requestKubeconfig(ctx, p, access{expiration: nodeAccess})
	if err != nil {
		return "", err
	}
	config, err := clientcmd.NewDefaultClientConfig(*kubeconfig, nil).ClientConfig()
	if err != nil {
		return "", err
	}
	cluster, err := corev1client.NewForConfig(config)
	if err != nil {
		return "", err
	}
	found, err := cluster.Nodes().Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", fmt.Errorf("shoot %q has no node %q; list them with: kubectl get nodes", p.name, node)
	}
	if err != nil {
		return "", fmt.Errorf("read node %q; name its address instead if the cluster does not answer: %w", node, err)
	}
	return internalAddress(found)
}

// internalAddress returns the address of a node in the network of the shoot.
func internalAddress(node *corev1.Node) (string, error) {
	for _, address := range node.Status.Addresses {
		if ip := net.ParseIP(address.Address); address.Type == corev1.NodeInternalIP && ip != nil {
			return ip.String(), nil
		}
	}
	return "", fmt.Errorf("node %q has no internal address", node.Name)
}

// ingressOf returns the networks from which the bastion may be reached: those of the user, or else the address with which this computer connects
// to the garden.
func ingressOf(ctx context.Context, cidrs []string, garden string) ([]operationsv1alpha1.BastionIngressPolicy, error) {
	var policies []operationsv1alpha1.BastionIngressPolicy
	for _, cidr := range cidrs {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			return nil, fmt.Errorf("--cidr must be a network such as 203.0.113.7/32, not %q", cidr)
		}
		policies = append(policies, operationsv1alpha1.BastionIngressPolicy{IPBlock: networkingv1.IPBlock{CIDR: prefix.Masked().String()}})
	}
	if len(policies) > 0 {
		return policies, nil
	}
	address, err := localAddress(ctx, garden)
	if err != nil {
		address = netip.Addr{}
	}
	if err := public(address); err != nil {
		return nil, err
	}
	return []operationsv1alpha1.BastionIngressPolicy{{IPBlock: networkingv1.IPBlock{CIDR: netip.PrefixFrom(address, address.BitLen()).String()}}}, nil
}

// public refuses the address of a computer that may have another one where the bastion is.
func public(address netip.Addr) error {
	switch {
	case !address.IsGlobalUnicast():
		return errors.New("this computer has no public address; name the one that you connect from with --cidr, such as --cidr=203.0.113.7/32")
	case address.IsPrivate():
		return fmt.Errorf("this computer has no public address; name the one that you connect from with --cidr: --cidr=%s/%d if the bastion "+
			"is in the same network, as on a local landscape, or else the one of your router, such as --cidr=203.0.113.7/32", address, address.BitLen())
	}
	return nil
}

// localAddress returns the address with which this computer connects to a URL. It sends nothing.
func localAddress(ctx context.Context, to string) (netip.Addr, error) {
	target, err := url.Parse(to)
	if err != nil {
		return netip.Addr{}, err
	}
	port := target.Port()
	if port == "" {
		port = "443"
	}
	connection, err := (&net.Dialer{Timeout: requestTimeout}).DialContext(ctx, "udp", net.JoinHostPort(target.Hostname(), port))
	if err != nil {
		return netip.Addr{}, err
	}
	defer connection.Close() //nolint:errcheck // nothing was sent
	address, err := netip.ParseAddrPort(connection.LocalAddr().String())
	return address.Addr().Unmap(), err
}

// newKeyPair returns a key pair for one bastion: the public key as in authorized_keys, the private key as in a file of OpenSSH.
func newKeyPair() (public string, private []byte, err error) {
	publicKey, privateKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", nil, err
	}
	authorized, err := ssh.NewPublicKey(publicKey)
	if err != nil {
		return "", nil, err
	}
	block, err := ssh.MarshalPrivateKey(privateKey, "")
	if err != nil {
		return "", nil, err
	}
	return string(bytes.TrimSpace(ssh.MarshalAuthorizedKey(authorized))), pem.EncodeToMemory(block), nil
}

// awaitBastion waits until a bastion is ready, and prints what is missing whenever that changes.
func (c *cli) awaitBastion(ctx context.Context, p *place, bastion *operationsv1alpha1.Bastion, timeout time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the bastion is not ready after %s", timeout))
	defer cancel()
	last := ""
	return kube.Await(ctx, p.client, &operationsv1alpha1.BastionList{}, func(found []*operationsv1alpha1.Bastion) error {
		if len(found) == 0 {
			return errors.New("the bastion was deleted")
		}
		if err := bastionReady(found[0]); err != nil {
			return err
		}
		found[0].DeepCopyInto(bastion)
		return nil
	}, func(missing error) {
		if text := line(missing.Error()); text != last {
			last = text
			fmt.Fprintln(c.ErrOut, text)
		}
	}, client.InNamespace(bastion.Namespace), client.MatchingFields{metav1.ObjectNameField: bastion.Name})
}

// bastionReady returns why a bastion cannot be used, or nil.
func bastionReady(bastion *operationsv1alpha1.Bastion) error {
	switch condition := kube.Condition(bastion.Status.Conditions, operationsv1alpha1.BastionReady); {
	case condition == nil:
		return errors.New("waiting for the gardenlet")
	case condition.Status != corev1beta1.ConditionTrue:
		return errors.New(condition.Message)
	case bastion.Status.Ingress == nil:
		return errors.New("the bastion has no address yet")
	}
	return nil
}

// hostOf returns the address of a bastion. It becomes part of a file, so it must be an address or a name.
func hostOf(ingress *corev1.LoadBalancerIngress) (string, error) {
	if ip := net.ParseIP(ingress.IP); ip != nil {
		return ip.String(), nil
	}
	if len(validation.IsDNS1123Subdomain(ingress.Hostname)) > 0 {
		return "", fmt.Errorf("the bastion has no usable address: %q, %q", ingress.IP, ingress.Hostname)
	}
	return ingress.Hostname, nil
}

// sshConfig returns the configuration of ssh for the hosts bastion and node. Their keys are not known: they are accepted when they are first seen,
// in a file for this connection alone. A load balancer may need a moment after it has its address: ssh tries again, once a second.
func sshConfig(dir, bastion, node string) []byte {
	return fmt.Appendf(nil, `Host bastion
  HostName %[2]s
  IdentityFile "%[1]s/bastion"
  ConnectionAttempts 6
  ConnectTimeout 5
Host node
  HostName %[3]s
  IdentityFile "%[1]s/node"
  ProxyJump bastion
Host *
  User %[4]s
  IdentitiesOnly yes
  StrictHostKeyChecking accept-new
  UserKnownHostsFile "%[1]s/known_hosts"
`, dir, bastion, node, sshUser)
}

// keepAlive keeps a bastion alive until the context ends. A failure is not the end: the next one may be in time.
func (c *cli) keepAlive(ctx context.Context, p *place, bastion *operationsv1alpha1.Bastion, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, constants.GardenerOperation, constants.GardenerOperationKeepalive)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		bastion := &operationsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: bastion.Namespace, Name: bastion.Name}}
		request, cancel := within(ctx, requestTimeout)
		err := p.client.Patch(request, bastion, client.RawPatch(types.MergePatchType, patch))
		cancel()
		if err != nil && ctx.Err() == nil {
			fmt.Fprintln(c.ErrOut, "warning: the bastion could not be kept alive: "+oneLine(err))
		}
	}
}

// createBastion creates a bastion. An interrupted request could leave one of which only the garden knows the name, so it is not interrupted.
func createBastion(ctx context.Context, p *place, bastion *operationsv1alpha1.Bastion) error {
	ctx, cancel := within(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	if err := p.client.Create(ctx, bastion); err != nil {
		return fmt.Errorf("create a Bastion: %w", err)
	}
	return nil
}

// deleteBastion deletes a bastion, also if the user has interrupted the program.
func (c *cli) deleteBastion(ctx context.Context, p *place, bastion *operationsv1alpha1.Bastion) error {
	ctx, cancel := within(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	if err := client.IgnoreNotFound(p.client.Delete(ctx, bastion)); err != nil {
		return fmt.Errorf("delete bastion %q, which ends by itself an hour after it was used last: %w", bastion.Name, err)
	}
	fmt.Fprintf(c.ErrOut, "bastion %q is deleted\n", bastion.Name)
	return nil
}
