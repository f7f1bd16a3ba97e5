package gardenctl

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/pkg/maintenance"
)

// description is the input of what "describe" prints.
type description struct {
	shoot   *corev1beta1.Shoot
	project string
	events  []corev1.Event // the oldest first
	now     time.Time
	program string
	color   bool
}

// none is printed for values that are not set.
const none = "-"

func (d *description) print(out io.Writer) error {
	var page bytes.Buffer
	d.head(&page)
	d.failures(&page)
	d.conditions(&page, "Conditions", d.shoot.Status.Conditions)
	d.conditions(&page, "Constraints", d.shoot.Status.Constraints)
	d.workers(&page)
	d.networks(&page)
	d.addresses(&page)
	d.credentials(&page)
	d.maintenance(&page)
	d.hibernation(&page)
	d.annotations(&page)
	d.timeline(&page)
	_, err := out.Write(page.Bytes())
	return err
}

// table writes rows of aligned cells.
func table(out *bytes.Buffer, indent string, rows [][]string) {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.TrimRight(indent+strings.Join(row, "\t"), "\t"))
	}
	_ = w.Flush() // into memory
}

func (d *description) head(out *bytes.Buffer) {
	s := d.shoot
	state := judge(s, d.program)
	status := d.paint(state.mood, state.text)
	rows := [][]string{{"Shoot:", s.Name}}
	add := func(title, value string) {
		if value != "" {
			rows = append(rows, []string{title + ":", value})
		}
	}
	add("Project", text(d.project)+" (namespace "+s.Namespace+")")
	add("Status", status)
	add("Next", state.next)
	if last := s.Status.LastOperation; last != nil {
		add("Last operation", fmt.Sprintf("%s %s, %d%%, %s ago: %s",
			last.Type, last.State, last.Progress, d.age(last.LastUpdateTime), line(last.Description)))
	}
	if since := s.Status.RetryCycleStartTime; since != nil && state.mood != fine {
		add("Retried since", d.age(*since)+" ago")
	}
	if s.DeletionTimestamp != nil {
		add("Deleted", "requested "+d.age(*s.DeletionTimestamp)+" ago")
	}
	add("Kubernetes", s.Spec.Kubernetes.Version)
	if s.Spec.Purpose != nil {
		add("Purpose", string(*s.Spec.Purpose))
	}
	profile := ""
	if s.Spec.CloudProfile != nil {
		profile = fmt.Sprintf(", %s %s", s.Spec.CloudProfile.Kind, s.Spec.CloudProfile.Name)
	}
	add("Provider", fmt.Sprintf("%s, region %s%s", s.Spec.Provider.Type, s.Spec.Region, profile))
	add("Seed", d.seed())
	add("Technical ID", s.Status.TechnicalID)
	if cp := s.Spec.ControlPlane; cp != nil && cp.HighAvailability != nil {
		add("Control plane", "tolerates the failure of a "+string(cp.HighAvailability.FailureTolerance.Type))
	}
	add("Gardener", s.Status.Gardener.Version)
	created := d.age(s.CreationTimestamp) + " ago"
	if by := s.Annotations[constants.GardenCreatedBy]; by != "" {
		created += " by " + by
	}
	add("Created", created)
	table(out, "", rows)
}

func (d *description) seed() string {
	wanted, present := d.shoot.Spec.SeedName, d.shoot.Status.SeedName
	switch {
	case wanted == nil && present == nil:
		return none
	case wanted != nil && present != nil && *wanted != *present:
		return fmt.Sprintf("%s, moving to %s", *present, *wanted)
	case wanted != nil:
		return *wanted
	}
	return *present
}

// failures prints the last errors, and what to do about them.
func (d *description) failures(out *bytes.Buffer) {
	if len(d.shoot.Status.LastErrors) == 0 {
		return
	}
	fmt.Fprintln(out, "\nFailures:")
	for _, failure := range d.shoot.Status.LastErrors {
		task := "the operation"
		if failure.TaskID != nil {
			task = *failure.TaskID
		}
		if failure.LastUpdateTime != nil {
			task += ", " + d.age(*failure.LastUpdateTime) + " ago"
		}
		fmt.Fprintf(out, "  %s\n    %s\n", d.paint(bad, task), line(failure.Description))
		for _, code := range failure.Codes {
			fmt.Fprintf(out, "    %s: %s\n", code, hint(code))
		}
	}
}

func (d *description) conditions(out *bytes.Buffer, title string, conditions []corev1beta1.Condition) {
	if len(conditions) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s:\n", title)
	rows := [][]string{{"TYPE", "STATUS", "FOR", "MESSAGE"}}
	var codes []corev1beta1.ErrorCode
	for _, condition := range conditions {
		message := ""
		if condition.Status != corev1beta1.ConditionTrue { // True needs no explanation
			message = line(condition.Reason + ": " + condition.Message)
			codes = append(codes, condition.Codes...)
		}
		rows = append(rows, []string{string(condition.Type), string(condition.Status), d.age(condition.LastTransitionTime), message})
	}
	table(out, "  ", rows)
	slices.Sort(codes)
	for _, code := range slices.Compact(codes) {
		fmt.Fprintf(out, "  %s: %s\n", code, hint(code))
	}
}

func (d *description) workers(out *bytes.Buffer) {
	if len(d.shoot.Spec.Provider.Workers) == 0 {
		fmt.Fprint(out, "\nWorkers: none\n")
		return
	}
	fmt.Fprintln(out, "\nWorkers:")
	rows := [][]string{{"POOL", "TYPE", "MIN", "MAX", "ZONES", "IMAGE", "KUBERNETES"}}
	for _, worker := range d.shoot.Spec.Provider.Workers {
		image := none
		if worker.Machine.Image != nil {
			image = worker.Machine.Image.Name
			if worker.Machine.Image.Version != nil {
				image += " " + *worker.Machine.Image.Version
			}
		}
		version := d.shoot.Spec.Kubernetes.Version
		if worker.Kubernetes != nil && worker.Kubernetes.Version != nil {
			version = *worker.Kubernetes.Version
		}
		rows = append(rows, []string{
			worker.Name, worker.Machine.Type, fmt.Sprint(worker.Minimum), fmt.Sprint(worker.Maximum),
			text(strings.Join(worker.Zones, ",")), image, version,
		})
	}
	table(out, "  ", rows)
	if pending := d.shoot.Status.InPlaceUpdates; pending != nil && pending.PendingWorkerUpdates != nil {
		pools := slices.Concat(pending.PendingWorkerUpdates.AutoInPlaceUpdate, pending.PendingWorkerUpdates.ManualInPlaceUpdate)
		if len(pools) > 0 {
			fmt.Fprintf(out, "  Waiting for an in-place update: %s\n", strings.Join(pools, ", "))
		}
	}
}

func (d *description) networks(out *bytes.Buffer) {
	rows := [][]string{}
	networking, real := d.shoot.Spec.Networking, d.shoot.Status.Networking
	if networking == nil && real == nil {
		return
	}
	if networking == nil {
		networking = &corev1beta1.Networking{}
	}
	if real == nil {
		real = &corev1beta1.NetworkingStatus{}
	}
	add := func(title string, desired *string, actual []string) {
		switch {
		case len(actual) > 0:
			rows = append(rows, []string{title + ":", strings.Join(actual, ", ")})
		case desired != nil:
			rows = append(rows, []string{title + ":", *desired})
		}
	}
	add("Type", networking.Type, nil)
	add("Nodes", networking.Nodes, real.Nodes)
	add("Pods", networking.Pods, real.Pods)
	add("Services", networking.Services, real.Services)
	add("Egress", nil, real.EgressCIDRs)
	if len(rows) > 0 {
		fmt.Fprintln(out, "\nNetworks:")
		table(out, "  ", rows)
	}
}

func (d *description) addresses(out *bytes.Buffer) {
	if len(d.shoot.Status.AdvertisedAddresses) == 0 {
		return
	}
	fmt.Fprintln(out, "\nAddresses:")
	var rows [][]string
	for _, address := range d.shoot.Status.AdvertisedAddresses {
		text := address.URL
		if application := ptr.Deref(address.Application, ""); application != "" {
			text += " (" + application + ")"
		}
		rows = append(rows, []string{address.Name + ":", text})
	}
	table(out, "  ", rows)
}

func (d *description) credentials(out *bytes.Buffer) {
	if d.shoot.Status.LastOperation == nil {
		return // not created yet
	}
	rotation := &corev1beta1.ShootCredentialsRotation{}
	if credentials := d.shoot.Status.Credentials; credentials != nil && credentials.Rotation != nil {
		rotation = credentials.Rotation
	}
	fmt.Fprintln(out, "\nCredentials:")
	rows := [][]string{{"NAME", "AGE", "ROTATION"}}
	add := func(
		name string, phase corev1beta1.CredentialsRotationPhase, started, completed *metav1.Time, pending []corev1beta1.PendingWorkersRollout,
	) {
		born := d.shoot.CreationTimestamp
		if completed != nil {
			born = *completed
		}
		state := "never"
		switch {
		case phase != "":
			state = string(phase)
		case completed != nil && (started == nil || !started.After(completed.Time)):
			state = string(corev1beta1.RotationCompleted)
		case started != nil:
			state = "under way"
		}
		if started != nil && state != string(corev1beta1.RotationCompleted) {
			state += ", since " + d.age(*started)
		}
		var pools []string
		for _, pool := range pending {
			pools = append(pools, pool.Name)
		}
		if len(pools) > 0 {
			state += "; worker pools to roll out: " + strings.Join(pools, ", ")
		}
		if phase == corev1beta1.RotationPrepared {
			state += "; switch clients to the new ones, then complete the rotation"
		}
		rows = append(rows, []string{name, d.age(born), state})
	}
	ca, key := ptr.Deref(rotation.CertificateAuthorities, corev1beta1.CARotation{}), ptr.Deref(rotation.ServiceAccountKey, corev1beta1.ServiceAccountKeyRotation{})
	encryption := ptr.Deref(rotation.ETCDEncryptionKey, corev1beta1.ETCDEncryptionKeyRotation{})
	ssh, observability := ptr.Deref(rotation.SSHKeypair, corev1beta1.ShootSSHKeypairRotation{}), ptr.Deref(rotation.Observability, corev1beta1.ObservabilityRotation{})
	add("CAs", ca.Phase, ca.LastInitiationTime, ca.LastCompletionTime, ca.PendingWorkersRollouts)
	add("service account key", key.Phase, key.LastInitiationTime, key.LastCompletionTime, key.PendingWorkersRollouts)
	add("etcd encryption key", encryption.Phase, encryption.LastInitiationTime, encryption.LastCompletionTime, nil)
	if len(d.shoot.Spec.Provider.Workers) > 0 {
		add("ssh key pair", "", ssh.LastInitiationTime, ssh.LastCompletionTime, nil)
	}
	add("observability passwords", "", observability.LastInitiationTime, observability.LastCompletionTime, nil)
	table(out, "  ", rows)
}

func (d *description) maintenance(out *bytes.Buffer) {
	spec := d.shoot.Spec.Maintenance
	if spec == nil {
		return
	}
	fmt.Fprintln(out, "\nMaintenance:")
	var rows [][]string
	if window := spec.TimeWindow; window != nil {
		begin, end, err := maintenance.Next(*window, d.now)
		times := fmt.Sprintf("%s to %s", begin.Format("15:04"), end.Format("15:04 -0700"))
		next := "now, for another " + duration.HumanDuration(end.Sub(d.now))
		if begin.After(d.now) {
			next = fmt.Sprintf("in %s, %s", duration.HumanDuration(begin.Sub(d.now)), begin.Format("2006-01-02 15:04 -0700"))
		}
		if err != nil { // the API rejects these
			times, next = err.Error(), none
		}
		rows = append(rows, []string{"Window:", times}, []string{"Next:", next})
	}
	if update := spec.AutoUpdate; update != nil {
		var updates []string
		if update.KubernetesVersion {
			updates = append(updates, "Kubernetes patch versions")
		}
		if update.MachineImageVersion == nil || *update.MachineImageVersion {
			updates = append(updates, "machine images")
		}
		rows = append(rows, []string{"Updates:", text(strings.Join(updates, ", "))})
	}
	if confine := spec.ConfineSpecUpdateRollout; confine != nil && *confine {
		rows = append(rows, []string{"Changes:", "wait for the window (confineSpecUpdateRollout)"})
	}
	if last := d.shoot.Status.LastMaintenance; last != nil {
		what := fmt.Sprintf("%s, %s ago: %s", last.State, d.age(last.TriggeredTime), line(last.Description))
		if last.FailureReason != nil {
			what += "; " + line(*last.FailureReason)
		}
		rows = append(rows, []string{"Last:", what})
	}
	table(out, "  ", rows)
}

func (d *description) hibernation(out *bytes.Buffer) {
	hibernation := d.shoot.Spec.Hibernation
	hibernate := hibernation != nil && ptr.Deref(hibernation.Enabled, false)
	if hibernation == nil && !d.shoot.Status.Hibernated {
		return
	}
	state := "awake"
	switch {
	case hibernate && d.shoot.Status.Hibernated:
		state = "hibernated"
	case hibernate:
		state = "awake, to be hibernated"
	case d.shoot.Status.Hibernated:
		state = "hibernated, to be woken up"
	}
	fmt.Fprintln(out, "\nHibernation:")
	rows := [][]string{{"State:", state}}
	if hibernation != nil {
		for _, schedule := range hibernation.Schedules {
			var parts []string
			if schedule.Start != nil {
				parts = append(parts, "hibernates at "+*schedule.Start)
			}
			if schedule.End != nil {
				parts = append(parts, "wakes up at "+*schedule.End)
			}
			zone := "UTC"
			if schedule.Location != nil {
				zone = *schedule.Location
			}
			rows = append(rows, []string{"Schedule:", strings.Join(parts, ", ") + " (" + zone + ")"})
		}
		if next := nextChange(hibernation.Schedules, d.now); next != nil {
			what := "wakes up"
			if next.sleep {
				what = "sleeps"
			}
			in, at := duration.HumanDuration(next.at.Sub(d.now)), next.at.Format("2006-01-02 15:04 -0700")
			rows = append(rows, []string{"Next:", fmt.Sprintf("%s in %s, %s", what, in, at)})
		}
	}
	table(out, "  ", rows)
}

// ignored is the effect of the annotation shoot.gardener.cloud/ignore.
const ignored = "the gardenlet does not reconcile the shoot, if its configuration allows that"

// effects are the annotations that change what happens to a shoot, and their meaning. A switch has an effect only when it is true.
var effects = []struct {
	key, meaning string
	isSwitch     bool
}{
	{constants.ShootIgnore, ignored, true},
	{constants.GardenerOperation, "this operation is requested", false},
	{constants.GardenerMaintenanceOperation, "the next maintenance performs this operation", false},
	{constants.FailedShootNeedsRetryOperation, "the next maintenance retries the shoot if it has failed", true},
	{constants.ShootTasks, "the next reconciliation performs these tasks", false},
	{constants.ConfirmationDeletion, "its deletion is confirmed", true},
	{constants.ConfirmationForceDeletion, "it is deleted without cleaning up its infrastructure", true},
	{constants.ShootExpirationTimestamp, "it is deleted at this time", false},
	{constants.ShootSkipCleanup, "its deletion deletes only load balancers, volumes and snapshots in it", true},
}

func (d *description) annotations(out *bytes.Buffer) {
	var rows [][]string
	for _, m := range effects {
		if value, ok := d.shoot.Annotations[m.key]; ok && (!m.isSwitch || isOn(value)) {
			rows = append(rows, []string{m.key + "=" + line(value), m.meaning})
		}
	}
	if len(rows) > 0 {
		fmt.Fprintln(out, "\nAnnotations with an effect:")
		table(out, "  ", rows)
	}
}

func (d *description) timeline(out *bytes.Buffer) {
	if len(d.events) == 0 {
		return
	}
	fmt.Fprintln(out, "\nEvents:")
	rows := [][]string{{"AGO", "TYPE", "REASON", "MESSAGE"}}
	for _, event := range d.events {
		message := line(event.Message)
		count := event.Count
		if event.Series != nil {
			count = event.Series.Count
		}
		if count > 1 {
			message += fmt.Sprintf(" (%d times)", count)
		}
		rows = append(rows, []string{duration.HumanDuration(d.now.Sub(happened(event))), event.Type, event.Reason, message})
	}
	table(out, "  ", rows)
}

func (d *description) age(t metav1.Time) string {
	if t.IsZero() {
		return none
	}
	return duration.HumanDuration(d.now.Sub(t.Time))
}

// paint gives text the colour of a mood.
func (d *description) paint(m mood, text string) string {
	if !d.color {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", map[mood]int{fine: 32, busy: 33, bad: 31}[m], text)
}

// isOn reports whether an annotation that is a switch is true. An invalid value counts as false.
func isOn(value string) bool {
	on, _ := strconv.ParseBool(value)
	return on
}

func text(s string) string {
	if s == "" {
		return none
	}
	return s
}

// line returns a text as one line, without characters that control terminals, or the direction of text: who wrote it may not be who reads it.
func line(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, strings.Join(strings.Fields(s), " "))
}
