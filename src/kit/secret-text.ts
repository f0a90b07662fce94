/** Texts that are secrets wherever they occur. */

/** Names of settings whose value is a secret. */
const ASSIGNED =
  '(?:aws_secret_access_key|aws_session_token|secret_access_key|password|passwd|pwd|client_secret|secret_key|api_key|apikey|access_token|auth_token|private_key)'

/**
 * Each pattern takes linear time: what may be repeated begins only where no such character stands before it, or is
 * bounded. Flag `g`: for `replace`.
 */
export const SECRET_TEXT: readonly RegExp[] = [
  /\b(sk|gha|ghs|ghl|rk|pk)[-_][A-Za-z0-9_-]{12,}/g,
  /\bwhsec_[A-Za-z0-9+/=]+/g,
  /\bBearer\s+\S+/gi,
  /\bAIza[A-Za-z0-9_-]{20,}/g,
  /\bAKIA[A-Z0-9]{12,}/g,
  /\bxox[a-z]-[A-Za-z0-9-]+/g,
  /\b(ghp|gho|ghu|ghr|glpat|hf)[-_][A-Za-z0-9_-]{16,}/g,
  /(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*/g,
  // The value of an assignment, as in a file of variables, a command or an address: not its name.
  new RegExp(`(?<=\\b${ASSIGNED}\\s{0,3}=\\s{0,3}["']?)[^\\s"'&;,]{4,500}`, 'gi'),
  // The same in JSON and YAML with quotes.
  new RegExp(`(?<=\\b${ASSIGNED}["']?\\s{0,3}:\\s{0,3}["'])[^\\s"']{4,500}`, 'gi'),
  /-----BEGIN [A-Z ]+-----[\s\S]*?(-----END [A-Z ]+-----|$)/g,
]
