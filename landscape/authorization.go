package landscape

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/gardeneradmissioncontroller"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/landscape/host"
	"gardener.cloud/gardener/pkg/secrets"
)

const (
	// authorizationDir is the directory on a machine that has the configuration of the kube-apiserver's authorization, in authorizationFile.
	// The kube-apiserver reads it again when it changes.
	authorizationDir  = "/etc/machine/authorization"
	authorizationFile = "config.yaml"
)

// admissionController is the address of the Service of gardener-admission-controller: the kube-apiserver does not use the cluster's DNS.
// Like localDNS, it is assigned only on request.
func (c Cluster) admissionController() netip.Addr {
	addr := c.services().Addr().As4()
	addr[3] = 54
	return netip.AddrFrom4(addr)
}

// authorizationConfigs is the directory that is authorizationDir on the machine.
func (l *Landscape) authorizationConfigs(cluster Cluster) string {
	return filepath.Join(l.userDataDir(cluster.Machines[0].Name), filepath.Base(authorizationDir))
}

// ensureAuthorizationConfig writes a configuration for a kube-apiserver that has none: it authorizes with roles, as there is no garden yet.
func (l *Landscape) ensureAuthorizationConfig(cluster Cluster) error {
	file := filepath.Join(l.authorizationConfigs(cluster), authorizationFile)
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	config, err := gardeneradmissioncontroller.Authorization{Node: true}.Configuration()
	if err != nil {
		return err
	}
	return host.WriteFile(file, config, 0o600)
}

// writeAuthorizationConfig has a kube-apiserver ask the admission controller too. Kubeconfigs are named for their content, so that the
// configuration changes with them; those of before are deleted.
func (l *Landscape) writeAuthorizationConfig(cluster Cluster, connection gardeneradmissioncontroller.Connection) error {
	dir := l.authorizationConfigs(cluster)
	keep := map[string]bool{authorizationFile: true}
	write := func(kubeconfig []byte, err error) (string, error) {
		if err != nil {
			return "", err
		}
		sum := sha256.Sum256(kubeconfig)
		name := hex.EncodeToString(sum[:8]) + ".yaml"
		keep[name] = true
		return authorizationDir + "/" + name, host.WriteFile(filepath.Join(dir, name), kubeconfig, 0o600)
	}
	authorization := gardeneradmissioncontroller.Authorization{Node: true}
	var err error
	if authorization.SeedsKubeconfig, err = write(connection.SeedsKubeconfig()); err != nil {
		return err
	}
	if authorization.ShootsKubeconfig, err = write(connection.ShootsKubeconfig()); err != nil {
		return err
	}
	config, err := authorization.Configuration()
	if err != nil {
		return err
	}
	if err := host.WriteFile(filepath.Join(dir, authorizationFile), config, 0o600); err != nil {
		return err
	}
	return removeOthers(dir, keep)
}

// removeOthers deletes the files in a directory that are not to be kept.
func removeOthers(dir string, keep map[string]bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !keep[entry.Name()] {
			if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// deployAdmissionController deploys gardener-admission-controller and its webhooks, and has the kube-apiserver ask it about requests of
// gardenlets and extensions.
func (u *upRun) deployAdmissionController(ctx context.Context, c client.WithWatch, cluster Cluster, image string, detail func(string)) error {
	credentials, connection, err := admissionControllerCredentials(ctx, c, cluster.admissionController())
	if err != nil {
		return err
	}
	objects, err := gardeneradmissioncontroller.Objects(gardeneradmissioncontroller.Values{
		Namespace: constants.GardenNamespace, Image: image, Replicas: 1, ClusterIP: cluster.admissionController(),
		Certificate: credentials.certificate, ClientCA: credentials.clientCA,
	})
	if err != nil {
		return err
	}
	if err := kube.Apply(ctx, c, fieldOwner, objects...); err != nil {
		return err
	}
	if err := awaitDeployments(ctx, c, detail, gardeneradmissioncontroller.Name); err != nil {
		return err
	}
	endpoint := gardeneradmissioncontroller.Endpoint{Namespace: constants.GardenNamespace, CABundle: connection.CABundle}
	if err := kube.Apply(ctx, c, fieldOwner, gardeneradmissioncontroller.Webhooks(endpoint, nil)...); err != nil {
		return err
	}
	if err := u.writeAuthorizationConfig(cluster, connection); err != nil {
		return err
	}
	// Now, as gardenlets had no rights before, and as what these roles allow would not show that the kube-apiserver asks.
	if err := deleteFormerRoles(ctx, c); err != nil {
		return err
	}
	detail("waiting until gardenlets are authorized")
	return awaitAuthorizers(ctx, c)
}

// admissionControllerSecrets are names of Secrets.
type admissionControllerSecrets struct{ certificate, clientCA string }

// admissionControllerCredentials generates the credentials of the admission controller and of its client, the kube-apiserver. Their CA signs
// nothing else, so that no other client has such a certificate.
func admissionControllerCredentials(
	ctx context.Context, c client.Client, address netip.Addr,
) (names admissionControllerSecrets, connection gardeneradmissioncontroller.Connection, err error) {
	manager, err := secrets.New(ctx, secrets.Values{
		Client: c, Namespace: constants.GardenNamespace, Identity: fieldOwner + "-admission-controller",
	})
	if err != nil {
		return names, connection, err
	}
	const ca = "ca-" + gardeneradmissioncontroller.Name
	if _, err := manager.Generate(ctx, &secrets.CertificateAuthority{Name: ca, CommonName: gardeneradmissioncontroller.Name}, secrets.KeepOld()); err != nil {
		return names, connection, err
	}
	server, err := manager.Generate(ctx, &secrets.Certificate{
		Name: gardeneradmissioncontroller.Name + "-cert", CommonName: gardeneradmissioncontroller.Name, Usage: secrets.ServerCert,
		DNSNames: gardeneradmissioncontroller.DNSNames(constants.GardenNamespace), IPAddresses: []net.IP{address.AsSlice()},
	}, secrets.SignedBy(ca))
	if err != nil {
		return names, connection, err
	}
	apiServer, err := manager.Generate(ctx, &secrets.Certificate{
		Name: gardeneradmissioncontroller.Name + "-client", CommonName: "kube-apiserver", Usage: secrets.ClientCert,
	}, secrets.SignedBy(ca))
	if err != nil {
		return names, connection, err
	}
	bundle, ok := manager.Get(ca, secrets.Bundle)
	if !ok {
		return names, connection, errors.New("the CA of gardener-admission-controller has no bundle")
	}
	connection = gardeneradmissioncontroller.Connection{
		URL: "https://" + address.String(), CABundle: bundle.Data[secrets.DataKeyCertificateBundle],
		Certificate: apiServer.Data[secrets.DataKeyCertificate], Key: apiServer.Data[secrets.DataKeyPrivateKey],
	}
	return admissionControllerSecrets{server.Name, bundle.Name}, connection, manager.Cleanup(ctx)
}

// awaitAuthorizers returns when the kube-apiserver allows what every gardenlet may do, which it does not notify of.
func awaitAuthorizers(ctx context.Context, c client.Client) error {
	const interval = 250 * time.Millisecond
	var last string
	if err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: constants.SeedUserNamePrefix + "any", Groups: []string{constants.SeedsGroup},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Group: corev1beta1.GroupName, Resource: "seeds"},
		}}
		if err := c.Create(ctx, review); err != nil {
			return false, err
		}
		last = review.Status.Reason + review.Status.EvaluationError
		return review.Status.Allowed, nil
	}); err != nil {
		return fmt.Errorf("the kube-apiserver does not authorize gardenlets: %s (%w)", last, context.Cause(ctx))
	}
	return nil
}
