package deletionconfirmation_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/apiserver/admission/deletionconfirmation"
)

const (
	namespace   = "garden-dev"
	forbidden   = metav1.StatusReasonForbidden
	confirmed   = "confirmation.gardener.cloud/deletion"
	confirmedBy = "deletion.gardener.cloud/confirmed-by"
)

// shoot is a Shoot with the label critical=yes and some annotations, given as keys and values.
func shoot(annotations ...string) *corev1beta1.Shoot {
	s := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shoot", Labels: map[string]string{"critical": "yes"}}}
	for i := 0; i < len(annotations); i += 2 {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, annotations[i], annotations[i+1])
	}
	return s
}

func TestAdmit(t *testing.T) {
	for name, tc := range map[string]struct {
		obj, old *corev1beta1.Shoot
		want     map[string]string
	}{
		"new, not confirmed":         {obj: shoot(confirmedBy, "mallory"), want: map[string]string{}},
		"new, confirmed":             {obj: shoot(confirmed, "true"), want: map[string]string{confirmed: "true", confirmedBy: "alice"}},
		"confirmed now":              {obj: shoot(confirmed, "true"), old: shoot(), want: map[string]string{confirmed: "true", confirmedBy: "alice"}},
		"confirmed by another":       {obj: shoot(confirmed, "true"), old: shoot(confirmed, "true", confirmedBy, "bob"), want: map[string]string{confirmed: "true", confirmedBy: "bob"}},
		"cannot be forged":           {obj: shoot(confirmed, "true", confirmedBy, "mallory"), old: shoot(confirmed, "true", confirmedBy, "bob"), want: map[string]string{confirmed: "true", confirmedBy: "bob"}},
		"confirmed before it was us": {obj: shoot(confirmed, "true"), old: shoot(confirmed, "true"), want: map[string]string{confirmed: "true", confirmedBy: "alice"}},
		"taken back":                 {obj: shoot(confirmed, "false", confirmedBy, "bob"), old: shoot(confirmed, "true", confirmedBy, "bob"), want: map[string]string{confirmed: "false"}},
	} {
		t.Run(name, func(t *testing.T) {
			request := admissiontest.Request{Resource: "shoots", Object: tc.obj}
			if tc.old != nil {
				request.Old = tc.old
			}
			if err := deletionconfirmation.New().Admit(t.Context(), request.Attributes(), nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tc.obj.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	project := func(annotations map[string]string, rules ...corev1beta1.DualApprovalForDeletion) *corev1beta1.Project {
		return &corev1beta1.Project{
			ObjectMeta: metav1.ObjectMeta{Name: "dev", Annotations: annotations},
			Spec:       corev1beta1.ProjectSpec{Namespace: new(namespace), DualApprovalForDeletion: rules},
		}
	}
	rule := func(change func(*corev1beta1.DualApprovalForDeletion)) corev1beta1.DualApprovalForDeletion {
		r := corev1beta1.DualApprovalForDeletion{Resource: "shoots", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"critical": "yes"}}}
		if change != nil {
			change(&r)
		}
		return r
	}
	other := shoot(confirmed, "true")
	other.Name = "other"
	state := &corev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shoot"}}
	going := shoot(confirmed, "true", confirmedBy, "alice")
	going.DeletionTimestamp, going.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"gardener"}
	byRobot := shoot(confirmed, "true", confirmedBy, "system:serviceaccount:garden-dev:robot")
	for name, tc := range map[string]struct {
		stored  []client.Object
		request admissiontest.Request
		want    metav1.StatusReason
	}{
		"a Shoot that is not confirmed":    {stored: []client.Object{shoot()}, request: admissiontest.Request{Resource: "shoots", Old: shoot()}, want: forbidden},
		"a Shoot that is":                  {stored: []client.Object{shoot(confirmed, "true")}, request: admissiontest.Request{Resource: "shoots", Old: shoot()}},
		"nonsense confirms nothing":        {stored: []client.Object{shoot(confirmed, "yes please")}, request: admissiontest.Request{Resource: "shoots", Old: shoot()}, want: forbidden},
		"a Shoot that does not exist":      {request: admissiontest.Request{Resource: "shoots", Old: shoot()}, want: metav1.StatusReasonNotFound},
		"all Shoots, one not confirmed":    {stored: []client.Object{shoot(), other}, request: admissiontest.Request{Resource: "shoots", Namespace: namespace, Collection: true}, want: forbidden},
		"all Shoots, in another namespace": {stored: []client.Object{shoot()}, request: admissiontest.Request{Resource: "shoots", Namespace: "garden-other", Collection: true}},
		"a Project that is not confirmed":  {stored: []client.Object{project(nil)}, request: admissiontest.Request{Resource: "projects", Old: project(nil)}, want: forbidden},
		"a Project that is":                {stored: []client.Object{project(map[string]string{confirmed: "1"})}, request: admissiontest.Request{Resource: "projects", Old: project(nil)}},
		"a ShootState that is not":         {stored: []client.Object{state}, request: admissiontest.Request{Resource: "shootstates", Old: state}, want: forbidden},
		"something else":                   {request: admissiontest.Request{Resource: "seeds", Old: &corev1beta1.Seed{}}},
		"something else of the same name":  {request: admissiontest.Request{Group: "other.example.com", Resource: "shoots", Old: shoot()}},
		"four eyes, both of one": {
			stored:  []client.Object{shoot(confirmed, "true", confirmedBy, "alice"), project(nil, rule(nil))},
			request: admissiontest.Request{Resource: "shoots", Old: shoot()}, want: forbidden,
		},
		"four eyes of two": {
			stored:  []client.Object{shoot(confirmed, "true", confirmedBy, "bob"), project(nil, rule(nil))},
			request: admissiontest.Request{Resource: "shoots", Old: shoot()},
		},
		"four eyes for other labels": {
			stored: []client.Object{shoot(confirmed, "true", confirmedBy, "alice"), project(nil, rule(func(r *corev1beta1.DualApprovalForDeletion) {
				r.Selector.MatchLabels["critical"] = "no"
			}))},
			request: admissiontest.Request{Resource: "shoots", Old: shoot()},
		},
		"four eyes for other resources": {
			stored: []client.Object{shoot(confirmed, "true", confirmedBy, "alice"), project(nil, rule(func(r *corev1beta1.DualApprovalForDeletion) {
				r.Resource = "others"
			}))},
			request: admissiontest.Request{Resource: "shoots", Old: shoot()},
		},
		"four eyes, it is going already": {
			stored:  []client.Object{going, project(nil, rule(nil))},
			request: admissiontest.Request{Resource: "shoots", Old: going},
		},
		"four eyes and a robot": {
			stored:  []client.Object{byRobot, project(nil, rule(nil))},
			request: admissiontest.Request{Resource: "shoots", Old: byRobot, User: "system:serviceaccount:garden-dev:robot"}, want: forbidden,
		},
		"four eyes but not of robots": {
			stored: []client.Object{byRobot, project(nil, rule(func(r *corev1beta1.DualApprovalForDeletion) {
				r.IncludeServiceAccounts = new(false)
			}))},
			request: admissiontest.Request{Resource: "shoots", Old: byRobot, User: "system:serviceaccount:garden-dev:robot"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := deletionconfirmation.New()
			p.GardenCache = admissiontest.Reader(t, tc.stored...)
			if err := p.Validate(t.Context(), tc.request.Attributes(), nil); admissiontest.Reason(err) != tc.want {
				t.Errorf("Validate() = %v, want reason %q", err, tc.want)
			}
		})
	}
}
