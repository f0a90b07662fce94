/**
 * Keys of vendors by their forms; case counts. The source stands above a row; rows without one are in the rules of gitleaks
 * (https://github.com/gitleaks/gitleaks, config/gitleaks.toml), but for Groq, xAI and Replicate, which publish no form.
 */
import type { Rule } from './rule.ts'

const row = (name: string, source: string): Rule => ({ name, source, label: 'SECRET' })

export const SECRET_RULES: readonly Rule[] = [
  // https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html, "Unique identifiers"
  row('aws_access_key', '\\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\\b'),
  // The names under which AWS's tools read it: ~/.aws/credentials, and the environment.
  row('aws_secret_key', '(?i:aws_secret_access_key)["\']?\\s{0,4}[=:]\\s{0,4}["\']?[A-Za-z0-9/+]{40}\\b'),
  // sk-..., sk-proj-..., sk-svcacct-..., and Anthropic's sk-ant-...
  row('api_key_sk', '\\bsk-(?:[a-z]{2,12}(?:[0-9]{2})?-)?[A-Za-z0-9_-]{20,200}'),
  // https://github.blog/engineering/platform-security/behind-githubs-new-authentication-token-formats/
  row('github_token', '\\bgh[pousr]_[A-Za-z0-9]{36,255}\\b'),
  row('github_fine_grained_token', '\\bgithub_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}\\b'),
  // https://docs.gitlab.com/security/tokens/#token-prefixes
  row('gitlab_token', '\\bgl(?:pat|oas|dt|rt|cbt|ptt|ft|imt|agent|soat)-[A-Za-z0-9_-]{20,200}'),
  // https://docs.slack.dev/authentication/tokens
  row('slack_token', '\\bxox[abeoprs]-(?:[0-9A-Za-z]{1,20}-){1,4}[0-9A-Za-z]{8,180}'),
  row('slack_app_token', '\\bxapp-[0-9]-[A-Z0-9]{9,13}-[0-9]{10,14}-[a-z0-9]{32,80}\\b'),
  row('slack_webhook', 'hooks\\.slack\\.com/services/T[A-Za-z0-9_]{6,14}/B[A-Za-z0-9_]{6,14}/[A-Za-z0-9_]{18,32}'),
  // https://cloud.google.com/docs/authentication/api-keys
  row('google_api_key', '\\bAIza[0-9A-Za-z_-]{35}'),
  row('google_oauth_token', '\\bya29\\.[0-9A-Za-z_-]{20,300}'),
  row('google_client_secret', '\\bGOCSPX-[0-9A-Za-z_-]{28}'),
  // https://docs.stripe.com/keys
  row('stripe_key', '\\b(?:sk|rk)_(?:live|test)_[0-9A-Za-z]{16,247}\\b'),
  row('stripe_webhook_secret', '\\bwhsec_[0-9A-Za-z+/]{32,90}'),
  // https://www.twilio.com/docs/iam/api-keys, https://docs.sendgrid.com/ui/account-and-settings/api-keys
  row('twilio_key', '\\bSK[0-9a-f]{32}\\b'),
  row('sendgrid_key', '\\bSG\\.[0-9A-Za-z_-]{22}\\.[0-9A-Za-z_-]{43}'),
  // npm, "About access tokens"; PyPI, "How can I use API tokens"
  row('npm_token', '\\bnpm_[0-9A-Za-z]{36}\\b'),
  row('pypi_token', '\\bpypi-AgEIcHlwaS5vcmc[0-9A-Za-z_-]{50,300}'),
  // https://huggingface.co/docs/hub/security-tokens
  row('hugging_face_token', '\\bhf_[0-9A-Za-z]{30,60}\\b'),
  row('replicate_token', '\\br8_[0-9A-Za-z]{37}\\b'),
  row('groq_key', '\\bgsk_[0-9A-Za-z]{48,60}\\b'),
  row('xai_key', '\\bxai-[0-9A-Za-z]{70,100}\\b'),
  row('perplexity_key', '\\bpplx-[0-9A-Za-z]{40,60}\\b'),
  // https://docs.digitalocean.com/reference/api/create-personal-access-token/
  row('digitalocean_token', '\\bdo[opr]_v1_[0-9a-f]{64}\\b'),
  row('doppler_token', '\\bdp\\.(?:pt|st|ct|sa|scim|audit)\\.[0-9A-Za-z._-]{40,80}'),
  row('shopify_token', '\\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}\\b'),
  row('databricks_token', '\\bdapi[0-9a-f]{32}(?:-\\d)?\\b'),
  row('hashicorp_vault_token', '\\bhv[sb]\\.[0-9A-Za-z_-]{24,300}'),
  row('linear_key', '\\blin_api_[0-9A-Za-z]{40}\\b'),
  row('notion_token', '\\bntn_[0-9A-Za-z]{40,60}\\b'),
  row('telegram_bot_token', '\\b[0-9]{8,10}:AA[0-9A-Za-z_-]{33}'),
  row('atlassian_token', '\\bATATT3[0-9A-Za-z_=-]{150,250}'),
  row('azure_storage_key', '(?i:AccountKey)=[0-9A-Za-z+/]{86}=='),
  row('age_secret_key', '\\bAGE-SECRET-KEY-1[0-9A-Z]{58}\\b'),
  // RFC 7468: the label of a private key.
  row('private_key', '-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----'),
  // RFC 7519: three parts, of which the first two begin as JSON objects do in base64.
  row('jwt', '\\beyJ[0-9A-Za-z_-]{10,400}\\.eyJ[0-9A-Za-z_-]{10,500}\\.[0-9A-Za-z_-]{10,100}'),
  // RFC 3986: a password in the user information of a URL.
  row('url_password', '\\b[a-z][a-z0-9+.-]{1,20}://[^\\s:@/]{1,100}:[^\\s@/]{3,100}@[A-Za-z0-9.-]{1,200}'),
]
