{{- define "octavo.fullname" -}}
{{- if contains "operator" .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-operator" (.Release.Name | trunc 41 | trimSuffix "-") }}
{{- end -}}
{{- end -}}

{{- define "octavo.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "octavo.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end -}}

{{/* NetworkPolicies of models let pods in that carry the first of these. */}}
{{- define "octavo.selectorLabels" -}}
app.kubernetes.io/name: octavo-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "octavo.labels" -}}
{{ include "octavo.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "octavo.image" -}}
{{ .image.repository }}:{{ .image.tag | default .appVersion }}
{{- end -}}

{{- define "octavo.adminSecretName" -}}
{{ include "octavo.fullname" . }}-admin
{{- end -}}

{{- define "octavo.certificateSecretName" -}}
{{ .Values.webhook.certificate.secretName | default (printf "%s-webhook" (include "octavo.fullname" .)) }}
{{- end -}}
