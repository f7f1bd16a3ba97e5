package landscape

import "testing"

func TestVersion(t *testing.T) {
	for image, want := range map[string]string{
		"a.b:5000/c/d:v1@sha256:00": "v1", "a.b:5000/c/d@sha256:00": "sha256:00", "d:v1": "v1", "a.b:5000/d": "",
	} {
		if got := version(image); got != want {
			t.Errorf("version of %q is %q, want %q", image, got, want)
		}
	}
}

func TestSampleShoot(t *testing.T) {
	shoot, err := sampleShoot()
	if err != nil {
		t.Fatal(err)
	}
	if shoot.Namespace != SampleShoot.Namespace || shoot.Name != SampleShoot.Name {
		t.Errorf("the example is %s/%s, want %s", shoot.Namespace, shoot.Name, SampleShoot)
	}
}
