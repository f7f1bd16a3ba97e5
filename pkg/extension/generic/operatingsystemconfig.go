package generic

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/kube"
)

const (
	// userDataPrefix begins the name of the Secret with the user data of an OperatingSystemConfig.
	userDataPrefix = "osc-result-"
	// unitDirectory is the directory of unit files.
	unitDirectory = "/etc/systemd/system"
	// defaultMode is the mode of files that set none.
	defaultMode = 0o644
	// endOfFile is the delimiter of here-documents in the script, unless the content has such a line itself.
	endOfFile = "END_OF_FILE"
)

// OperatingSystemConfig is an extension.Actuator of OperatingSystemConfigs for operating systems with bash and systemd, and machines that run a shell script
// as their user data. It does nothing for the purpose reconcile, which gardener-node-agent applies.
type OperatingSystemConfig struct {
	// Client is that of the seed. It reads Secrets of files, and writes those with user data.
	Client client.Client
	// Owner is the field manager, which is the name of the extension.
	Owner string
	// Prologue are commands that the script begins with, before it writes files. They may be run again.
	Prologue string
}

// Reconcile renders the user data, if it is for new machines.
func (a *OperatingSystemConfig) Reconcile(ctx context.Context, osc *extensionsv1alpha1.OperatingSystemConfig, _ *extension.Cluster) error {
	if osc.Spec.Purpose != extensionsv1alpha1.OperatingSystemConfigPurposeProvision {
		return nil
	}
	contents, err := a.contents(ctx, osc)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: osc.Namespace, Name: userDataPrefix + osc.Name}, Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{extensionsv1alpha1.OperatingSystemConfigSecretDataKey: userData(a.Prologue, &osc.Spec, contents)},
	}
	if err := kube.Apply(ctx, a.Client, a.Owner, secret); err != nil {
		return err
	}
	osc.Status.CloudConfig = &extensionsv1alpha1.CloudConfig{SecretRef: corev1.SecretReference{Namespace: secret.Namespace, Name: secret.Name}}
	return nil
}

// Delete removes the user data.
func (a *OperatingSystemConfig) Delete(ctx context.Context, osc *extensionsv1alpha1.OperatingSystemConfig, _ *extension.Cluster) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: osc.Namespace, Name: userDataPrefix + osc.Name}}
	if err := a.Client.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete user data: %w", err)
	}
	return nil
}

// Migrate removes the user data, which is rendered again in the other seed.
func (a *OperatingSystemConfig) Migrate(ctx context.Context, osc *extensionsv1alpha1.OperatingSystemConfig, cluster *extension.Cluster) error {
	return a.Delete(ctx, osc, cluster)
}

// contents returns the contents of the files of a configuration, in the same order.
func (a *OperatingSystemConfig) contents(ctx context.Context, osc *extensionsv1alpha1.OperatingSystemConfig) ([][]byte, error) {
	var all [][]byte
	for i, file := range osc.Spec.Files {
		at := field.NewPath("spec", "files").Index(i)
		if !path.IsAbs(file.Path) {
			return nil, errorcode.With(field.Invalid(at.Child("path"), file.Path, "must be an absolute path"), corev1beta1.ErrorConfigurationProblem)
		}
		content, err := a.content(ctx, osc.Namespace, &file.Content, at.Child("content"))
		if err != nil {
			return nil, err
		}
		all = append(all, content)
	}
	return all, nil
}

func (a *OperatingSystemConfig) content(ctx context.Context, namespace string, content *extensionsv1alpha1.FileContent, at *field.Path) ([]byte, error) {
	switch {
	case content.SecretRef != nil:
		secret := &corev1.Secret{}
		if err := a.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: content.SecretRef.Name}, secret); err != nil {
			return nil, fmt.Errorf("read Secret %q of a file: %w", content.SecretRef.Name, err)
		}
		data, ok := secret.Data[content.SecretRef.DataKey]
		if !ok {
			return nil, fmt.Errorf("%s: Secret %q has no key %q", at.Child("secretRef"), content.SecretRef.Name, content.SecretRef.DataKey)
		}
		return data, nil
	case content.Inline != nil && content.Inline.Encoding == string(extensionsv1alpha1.B64FileCodecID):
		data, err := base64.StdEncoding.DecodeString(content.Inline.Data)
		if err != nil {
			return nil, errorcode.With(errors.New(at.Child("inline", "data").String()+": is not valid base64"), corev1beta1.ErrorConfigurationProblem)
		}
		return data, nil
	case content.Inline != nil:
		return []byte(content.Inline.Data), nil
	}
	return nil, errorcode.With(field.Required(at, "new machines take files from secretRef or inline only"), corev1beta1.ErrorConfigurationProblem)
}

// userData renders the script, which writes files and units, and starts units. It may be run again.
func userData(prologue string, spec *extensionsv1alpha1.OperatingSystemConfigSpec, contents [][]byte) []byte {
	var out bytes.Buffer
	out.WriteString("#!/bin/bash\nset -euo pipefail\n" + prologue)
	for i, file := range spec.Files {
		mode := uint32(defaultMode)
		if file.Permissions != nil {
			mode = *file.Permissions
		}
		plain := file.Content.TransmitUnencoded != nil && *file.Content.TransmitUnencoded
		writeFile(&out, file.Path, mode, contents[i], plain)
	}
	var enable, disable, start, stop []string
	for _, unit := range spec.Units {
		if unit.Content != nil {
			writeFile(&out, path.Join(unitDirectory, unit.Name), defaultMode, []byte(*unit.Content), false)
		}
		for _, dropIn := range unit.DropIns {
			writeFile(&out, path.Join(unitDirectory, unit.Name+".d", dropIn.Name), defaultMode, []byte(dropIn.Content), false)
		}
		if unit.Enable == nil || *unit.Enable {
			enable = append(enable, Quote(unit.Name))
		} else {
			disable = append(disable, Quote(unit.Name))
		}
		if unit.Command != nil && *unit.Command == extensionsv1alpha1.CommandStop {
			stop = append(stop, Quote(unit.Name))
		} else {
			start = append(start, Quote(unit.Name))
		}
	}
	out.WriteString("\nsystemctl daemon-reload\n")
	for _, verb := range []struct {
		name  string
		units []string
	}{{"enable", enable}, {"disable", disable}, {"stop", stop}, {"restart --no-block", start}} {
		if len(verb.units) > 0 {
			fmt.Fprintf(&out, "systemctl %s %s\n", verb.name, strings.Join(verb.units, " "))
		}
	}
	return out.Bytes()
}

// writeFile renders the commands that write a file. Text with placeholders, which are replaced before it gets to the machine, is written as it
// is; other content is encoded.
func writeFile(out *bytes.Buffer, name string, mode uint32, content []byte, plain bool) {
	target := Quote(name)
	fmt.Fprintf(out, "\nmkdir -p %s\n", Quote(path.Dir(name)))
	end := endOfFile
	for bytes.Contains(content, []byte(end)) {
		end += "_"
	}
	if plain {
		// A here-document always ends with a line break; the file may not.
		fmt.Fprintf(out, "{ cat <<'%s'\n%s\n%s\n} | head -c -1 > %s\n", end, content, end, target)
	} else {
		fmt.Fprintf(out, "base64 -d > %s <<'%s'\n%s\n%s\n", target, end, base64.StdEncoding.EncodeToString(content), end)
	}
	fmt.Fprintf(out, "chmod %04o %s\n", mode, target)
}

// Quote returns a text as one word for the shell.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
