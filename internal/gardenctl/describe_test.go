package gardenctl

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/test/golden"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func before(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// created is a shoot that was just created.
func created() *corev1beta1.Shoot {
	return &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "garden-dev", Name: "crazy-botany", UID: "1", Generation: 1, CreationTimestamp: before(20 * time.Second),
			Annotations: map[string]string{constants.GardenCreatedBy: "alice"},
		},
		Spec: corev1beta1.ShootSpec{
			CloudProfile: &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"}, Region: "local",
			Kubernetes: corev1beta1.Kubernetes{Version: "1.35.1"}, Purpose: new(corev1beta1.ShootPurposeProduction),
			Networking: &corev1beta1.Networking{Type: new("flannel"), Nodes: new("10.0.0.0/16"), Pods: new("10.1.0.0/16"), Services: new("10.2.0.0/16")},
			Maintenance: &corev1beta1.Maintenance{
				TimeWindow: &corev1beta1.MaintenanceTimeWindow{Begin: "220000+0100", End: "230000+0100"},
				AutoUpdate: &corev1beta1.MaintenanceAutoUpdate{KubernetesVersion: true},
			},
			Provider: corev1beta1.Provider{Type: "local", Workers: []corev1beta1.Worker{
				{
					Name: "a", Minimum: 1, Maximum: 3, Zones: []string{"z1", "z2"},
					Machine: corev1beta1.Machine{Type: "small", Image: &corev1beta1.ShootMachineImage{Name: "local", Version: new("1.0.0")}},
				},
				{Name: "longer", Minimum: 0, Maximum: 10, Machine: corev1beta1.Machine{Type: "large"}, Kubernetes: &corev1beta1.WorkerKubernetes{Version: new("1.34.3")}},
			}},
		},
	}
}

// running is a healthy shoot.
func running() *corev1beta1.Shoot {
	s := created()
	s.CreationTimestamp = before(50 * 24 * time.Hour)
	s.Spec.SeedName = new("aws-1")
	s.Status = corev1beta1.ShootStatus{
		SeedName: new("aws-1"), TechnicalID: "shoot--dev--crazy-botany", ObservedGeneration: 1, Gardener: corev1beta1.Gardener{Version: "v1.150.0"},
		LastOperation: &corev1beta1.LastOperation{
			Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded, Progress: 100,
			LastUpdateTime: before(3 * time.Hour), Description: "Shoot cluster has been successfully reconciled.",
		},
		Conditions: []corev1beta1.Condition{
			condition(corev1beta1.ShootAPIServerAvailable, corev1beta1.ConditionTrue, "", ""),
			condition(corev1beta1.ShootControlPlaneHealthy, corev1beta1.ConditionTrue, "", ""),
			condition(corev1beta1.ShootEveryNodeReady, corev1beta1.ConditionTrue, "", ""),
		},
		Constraints: []corev1beta1.Condition{condition(corev1beta1.ShootHibernationPossible, corev1beta1.ConditionTrue, "", "")},
		AdvertisedAddresses: []corev1beta1.ShootAdvertisedAddress{
			{Name: "external", URL: "https://api.crazy-botany.dev.example.com"},
			{Name: "internal", URL: "https://api.crazy-botany.dev.internal.example.com"},
			{Name: "tlsroute/logs/0", URL: "https://logs-dev--crazy-botany.ingress.example.com", Application: new("logs")},
		},
		Networking: &corev1beta1.NetworkingStatus{Pods: []string{"10.1.0.0/16", "2001:db8::/56"}, EgressCIDRs: []string{"203.0.113.7/32"}},
		Credentials: &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
			CertificateAuthorities: &corev1beta1.CARotation{
				Phase: corev1beta1.RotationPrepared, LastInitiationTime: new(before(48 * time.Hour)),
				PendingWorkersRollouts: []corev1beta1.PendingWorkersRollout{{Name: "a"}},
			},
			SSHKeypair: &corev1beta1.ShootSSHKeypairRotation{LastInitiationTime: new(before(5 * 24 * time.Hour)), LastCompletionTime: new(before(5*24*time.Hour - time.Minute))},
		}},
	}
	return s
}

func condition(typ corev1beta1.ConditionType, status corev1beta1.ConditionStatus, reason, message string, codes ...corev1beta1.ErrorCode) corev1beta1.Condition {
	return corev1beta1.Condition{
		Type: typ, Status: status, Reason: reason, Message: message, Codes: codes,
		LastTransitionTime: before(26 * time.Hour), LastUpdateTime: before(time.Minute),
	}
}

// failing is a shoot whose last operation is Failed.
func failing() *corev1beta1.Shoot {
	s := running()
	s.Annotations[constants.ShootIgnore] = "true"
	s.Status.LastOperation.State, s.Status.LastOperation.Progress = corev1beta1.LastOperationStateFailed, 45
	s.Status.LastOperation.Description = "Flow stopped:\ntwo tasks failed"
	s.Status.RetryCycleStartTime = new(before(25 * time.Hour))
	s.Status.LastErrors = []corev1beta1.LastError{
		{
			Description: "task \"infrastructure\": vCPU quota is\n used up (20/20)", TaskID: new("infrastructure"), LastUpdateTime: new(before(4 * time.Minute)),
			Codes: []corev1beta1.ErrorCode{corev1beta1.ErrorInfraQuotaExceeded, corev1beta1.ErrorInfraUnauthorized},
		},
		{Description: "time is up", Codes: []corev1beta1.ErrorCode{"ERR_FROM_THE_FUTURE"}},
	}
	s.Status.Conditions[1] = condition(corev1beta1.ShootControlPlaneHealthy, corev1beta1.ConditionFalse, "DeploymentUnhealthy", "Deployment \"kube-apiserver\" lacks pods")
	s.Status.Constraints[0] = condition(corev1beta1.ShootHibernationPossible, corev1beta1.ConditionFalse, "ProblematicWebhook",
		"webhook \"guard\" \x1b[31mblocks", corev1beta1.ErrorProblematicWebhook)
	return s
}

func hibernated() *corev1beta1.Shoot {
	s := running()
	s.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: new(true), Schedules: []corev1beta1.HibernationSchedule{
		{Start: new("0 18 * * 1-5"), End: new("0 8 * * 1-5"), Location: new("Europe/Berlin")},
	}}
	s.Spec.Maintenance.ConfineSpecUpdateRollout = new(true)
	s.Spec.Maintenance.TimeWindow = &corev1beta1.MaintenanceTimeWindow{Begin: "114500+0000", End: "124500+0000"}
	s.Status.LastMaintenance = &corev1beta1.LastMaintenance{
		Description: "Kubernetes 1.35.0 to 1.35.1", TriggeredTime: before(24 * time.Hour), State: corev1beta1.LastOperationStateFailed, FailureReason: new("no such version"),
	}
	s.Status.Hibernated = true
	return s
}

func deleting() *corev1beta1.Shoot {
	s := running()
	s.Spec.Provider.Workers, s.Spec.Networking, s.Status.Networking = nil, nil, nil
	s.DeletionTimestamp = new(before(10 * time.Minute))
	s.Annotations[constants.ConfirmationDeletion] = "true"
	s.Status.LastOperation = &corev1beta1.LastOperation{
		Type: corev1beta1.LastOperationTypeDelete, State: corev1beta1.LastOperationStateProcessing, Progress: 62,
		LastUpdateTime: before(5 * time.Second), Description: "Deleting etcd",
	}
	return s
}

func TestDescribe(t *testing.T) {
	event := func(name, reason, message string, ago time.Duration, change ...func(*corev1.Event)) corev1.Event {
		e := corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.EventTypeNormal, Reason: reason, Message: message,
			InvolvedObject: corev1.ObjectReference{UID: "1"}, LastTimestamp: before(ago), Count: 1,
		}
		for _, c := range change {
			c(&e)
		}
		return e
	}
	for name, tc := range map[string]struct {
		shoot  *corev1beta1.Shoot
		events []corev1.Event
		color  bool
	}{
		"new": {shoot: created(), events: []corev1.Event{
			event("b", "SchedulingFailed", "no seed has\nroom", 5*time.Second, func(e *corev1.Event) { e.Type, e.Count = corev1.EventTypeWarning, 3 }),
			event("a", "ResourceReferenced", "first", 15*time.Second),
			event("c", "Deleted", "of an earlier one", time.Second, func(e *corev1.Event) { e.InvolvedObject.UID = "0" }),
		}},
		"healthy":       {shoot: running()},
		"failing":       {shoot: failing()},
		"failing-color": {shoot: failing(), color: true},
		"hibernated":    {shoot: hibernated()},
		"deleting":      {shoot: deleting()},
	} {
		t.Run(name, func(t *testing.T) {
			d := description{shoot: tc.shoot, project: projectOf(tc.shoot), now: now, program: Name, color: tc.color, events: timeline(tc.shoot, tc.events)}
			var out bytes.Buffer
			if err := d.print(&out); err != nil {
				t.Fatal(err)
			}
			golden.Text(t, "describe/"+name+".txt", out.String())
			for _, line := range strings.Split(out.String(), "\n") {
				if strings.TrimRight(line, " ") != line {
					t.Errorf("line ends in spaces: %q", line)
				}
			}
		})
	}
}

// Only annotations with an effect are shown, and switches only when they are on.
func TestAnnotations(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"none":           {},
		"others":         {annotations: map[string]string{constants.GardenCreatedBy: "alice"}},
		"ignored":        {map[string]string{constants.ShootIgnore: "1"}, constants.ShootIgnore + "=1   the gardenlet does not reconcile the shoot, if its configuration allows that"},
		"not ignored":    {annotations: map[string]string{constants.ShootIgnore: "false"}},
		"invalid value":  {annotations: map[string]string{constants.ShootSkipCleanup: "yes"}},
		"operation":      {map[string]string{constants.GardenerOperation: "retry"}, constants.GardenerOperation + "=retry   this operation is requested"},
		"those of seeds": {annotations: map[string]string{constants.EmergencyStopShootReconciliations: "true"}},
		"without effect": {annotations: map[string]string{
			constants.ShootSkipReadiness: "true", constants.ShootIgnoreAlerts: "true",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			want := ""
			if tc.want != "" {
				want = "\nAnnotations with an effect:\n  " + tc.want + "\n"
			}
			var out bytes.Buffer
			d := description{shoot: &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}}
			if d.annotations(&out); out.String() != want {
				t.Errorf("annotations are %q, want %q", out.String(), want)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	state := func(change func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
		s := running()
		change(s)
		return s
	}
	for name, tc := range map[string]struct {
		shoot *corev1beta1.Shoot
		want  verdict
	}{
		"healthy":          {running(), verdict{fine, "healthy", ""}},
		"hibernated":       {hibernated(), verdict{fine, "hibernated", ""}},
		"not scheduled":    {created(), verdict{busy, "waiting for the scheduler", "see the events for why no seed is chosen"}},
		"deleted too soon": {state(func(s *corev1beta1.Shoot) { s.Status.LastOperation, s.DeletionTimestamp = nil, new(before(0)) }), verdict{busy, "deletion requested; waiting for the gardenlet", ""}},
		"scheduled":        {state(func(s *corev1beta1.Shoot) { s.Status.LastOperation = nil }), verdict{busy, "waiting for the gardenlet of seed aws-1", ""}},
		"failed":           {failing(), verdict{bad, "reconcile failed, and is not retried", "fix the cause, then: gardenctl retry shoot crazy-botany -n garden-dev"}},
		"failed, changed since": {state(func(s *corev1beta1.Shoot) {
			s.Generation, s.Status.LastOperation.State = 2, corev1beta1.LastOperationStateFailed
		}), verdict{busy, "changed; waiting for the gardenlet", ""}},
		"failed, deleted since": {
			state(func(s *corev1beta1.Shoot) {
				s.Generation, s.DeletionTimestamp, s.Status.LastOperation.State = 2, new(before(0)), corev1beta1.LastOperationStateFailed
			}),
			verdict{busy, "deletion requested; waiting for the gardenlet", ""},
		},
		"under way, changed since": {state(func(s *corev1beta1.Shoot) {
			s.Generation, s.Status.LastOperation.State = 2, corev1beta1.LastOperationStateProcessing
		}), verdict{busy, "reconcile is under way", ""}},
		"error":    {state(func(s *corev1beta1.Shoot) { s.Status.LastOperation.State = corev1beta1.LastOperationStateError }), verdict{bad, "reconcile fails, and is retried", ""}},
		"pending":  {state(func(s *corev1beta1.Shoot) { s.Status.LastOperation.State = corev1beta1.LastOperationStatePending }), verdict{busy, "reconcile is pending", ""}},
		"deleting": {deleting(), verdict{busy, "delete is under way", ""}},
		"deleted":  {state(func(s *corev1beta1.Shoot) { s.DeletionTimestamp = new(before(0)) }), verdict{busy, "deletion requested", ""}},
		"changed":  {state(func(s *corev1beta1.Shoot) { s.Generation = 2 }), verdict{busy, "changed; waiting for the gardenlet", ""}},
		"changed in a way that does not wait for the maintenance window": { // other changes do not increase the generation
			state(func(s *corev1beta1.Shoot) { s.Generation, s.Spec.Maintenance.ConfineSpecUpdateRollout = 2, new(true) }),
			verdict{busy, "changed; waiting for the gardenlet", ""},
		},
		"unhealthy": {state(func(s *corev1beta1.Shoot) { s.Status.Conditions[2].Status = corev1beta1.ConditionProgressing }), verdict{bad, "unhealthy (EveryNodeReady)", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := judge(tc.shoot, Name); got != tc.want {
				t.Errorf("judge() is %+v, want %+v", got, tc.want)
			}
		})
	}
}

// Every code that the API declares has a hint.
func TestHints(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../api/core/v1beta1/common_types.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := map[corev1beta1.ErrorCode]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "ErrorCode" {
			code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Error(err)
			}
			declared[corev1beta1.ErrorCode(code)] = true
		}
		return true
	})
	has := map[corev1beta1.ErrorCode]bool{}
	for code, text := range hints {
		has[code] = text != ""
	}
	if diff := cmp.Diff(declared, has); diff != "" || len(declared) < 11 {
		t.Errorf("hints (-declared +has):\n%s", diff)
	}
}

func TestNextChange(t *testing.T) {
	for name, tc := range map[string]struct {
		schedules []corev1beta1.HibernationSchedule
		want      *change
	}{
		"none":             {},
		"hibernates first": {[]corev1beta1.HibernationSchedule{{Start: new("0 18 * * *"), End: new("0 8 * * *")}}, &change{now.Add(6 * time.Hour), true}},
		"of two schedules": {[]corev1beta1.HibernationSchedule{{Start: new("0 18 * * *")}, {End: new("0 13 * * *")}}, &change{now.Add(time.Hour), false}},
		"in a zone":        {[]corev1beta1.HibernationSchedule{{Start: new("0 18 * * *"), Location: new("Europe/Berlin")}}, &change{now.Add(5 * time.Hour), true}},
		"not on a weekend": {[]corev1beta1.HibernationSchedule{{End: new("0 8 * * 1-5")}}, &change{now.Add(44 * time.Hour), false}},
		"invalid":          {[]corev1beta1.HibernationSchedule{{End: new("at eight")}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := nextChange(tc.schedules, now)
			if (got == nil) != (tc.want == nil) || got != nil && (!got.at.Equal(tc.want.at) || got.sleep != tc.want.sleep) {
				t.Errorf("nextChange() is %v, want %v", got, tc.want)
			}
		})
	}
}

// Texts of others neither move the cursor of a terminal nor turn what stands after them.
func TestLine(t *testing.T) {
	if got, want := line("first \x1b[2J\n second\u009b31m \u202ethird\u2066"), "first [2J second31m third"; got != want {
		t.Errorf("line returns %q, want %q", got, want)
	}
}
