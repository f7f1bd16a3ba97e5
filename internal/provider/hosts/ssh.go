package hosts

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"

	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
	"gardener.cloud/gardener/pkg/extension/generic"
)

var (
	//go:embed scripts/check.sh
	checkScript string
	//go:embed scripts/provision.sh
	provisionScript string
	//go:embed scripts/clean.sh
	cleanScript string
)

const (
	// connectTimeout limits the connection and the handshake.
	connectTimeout = 15 * time.Second
	// mostOutput is how many bytes of an output are kept: a tenant may have been root on the host.
	mostOutput = 64 << 10
)

// errUntrusted means that the server has another key than the pinned one.
var errUntrusted = errors.New("the SSH server has another key than spec.hostKey")

// exitError is a script that ended with an error, so the host was reached.
type exitError struct{ message string }

func (e *exitError) Error() string { return e.message }

// runner runs a script with arguments on a host as root, and returns its output.
type runner func(ctx context.Context, host *hostsv1alpha1.Host, key []byte, script string, stdin []byte, args ...string) (string, error)

// runBySSH is the runner by SSH. It trusts only the pinned key of the host.
func runBySSH(ctx context.Context, host *hostsv1alpha1.Host, key []byte, script string, stdin []byte, args ...string) (string, error) {
	client, err := connect(ctx, host, key)
	if err != nil {
		return "", err
	}
	defer client.Close() //nolint:errcheck // nothing is written any more
	stop := context.AfterFunc(ctx, func() { _ = client.Close() })
	defer stop()
	session, err := client.NewSession()
	if err != nil {
		return "", fmt.Errorf("open a session: %w", err)
	}
	stdout, stderr := &limited{}, &limited{}
	session.Stdin, session.Stdout, session.Stderr = bytes.NewReader(stdin), stdout, stderr
	err = session.Run(command(host.Spec.User, limitOf(ctx), script, args...))
	var exit *ssh.ExitError
	switch {
	case errors.As(err, &exit):
		return "", &exitError{fmt.Sprintf("exit status %d: %s", exit.ExitStatus(), strings.TrimSpace(stderr.String()))}
	case err != nil:
		return "", fmt.Errorf("run a script: %w", errors.Join(err, context.Cause(ctx)))
	}
	return stdout.String(), nil
}

// limitOf returns how long a script may run: it would outlive its connection.
func limitOf(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return max(time.Until(deadline), time.Second)
	}
	return hostTimeout
}

// command returns the command line that runs a script.
func command(user string, limit time.Duration, script string, args ...string) string {
	words := []string{"timeout", "--signal=KILL", strconv.Itoa(int(limit.Seconds())), "bash", "-c", generic.Quote(script), "gardener"}
	if user != "root" {
		words = append([]string{"sudo", "-n"}, words...)
	}
	for _, arg := range args {
		words = append(words, generic.Quote(arg))
	}
	return strings.Join(words, " ")
}

func connect(ctx context.Context, host *hostsv1alpha1.Host, key []byte) (*ssh.Client, error) {
	pinned, _, _, _, err := ssh.ParseAuthorizedKey([]byte(host.Spec.HostKey))
	if err != nil {
		return nil, errors.New("spec.hostKey: must be a public key such as in /etc/ssh/ssh_host_ed25519_key.pub")
	}
	signer, err := ssh.ParsePrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("spec.keySecretRef: key %s: must be a private key without a passphrase", corev1.SSHAuthPrivateKey)
	}
	untrusted := false
	config := &ssh.ClientConfig{
		User: host.Spec.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyAlgorithms: algorithms(pinned),
		HostKeyCallback: func(_ string, _ net.Addr, offered ssh.PublicKey) error {
			if untrusted = !bytes.Equal(offered.Marshal(), pinned.Marshal()); untrusted {
				return errUntrusted
			}
			return nil
		},
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	address := net.JoinHostPort(host.Spec.Address, strconv.Itoa(int(host.Spec.Port)))
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	// The handshake knows no context.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	c, channels, requests, err := ssh.NewClientConn(conn, address, config)
	if err == nil {
		return ssh.NewClient(c, channels, requests), nil
	}
	_ = conn.Close() // the error of the handshake says more
	if untrusted {
		return nil, errUntrusted
	}
	return nil, fmt.Errorf("SSH at %s: %w", address, err)
}

// algorithms are those for a key: a server with keys of several kinds shall show this one.
func algorithms(key ssh.PublicKey) []string {
	if key.Type() == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{key.Type()}
}

// limited keeps the beginning of what is written. The buffer is not embedded: io.Copy would use its ReadFrom, which knows no limit.
type limited struct{ buffer bytes.Buffer }

var _ io.Writer = (*limited)(nil)

func (l *limited) Write(p []byte) (int, error) {
	l.buffer.Write(p[:min(len(p), mostOutput-l.buffer.Len())])
	return len(p), nil
}

func (l *limited) String() string { return l.buffer.String() }
