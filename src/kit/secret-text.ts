/** Texts that are secrets wherever they occur. */

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
  /-----BEGIN [A-Z ]+-----[\s\S]*?(-----END [A-Z ]+-----|$)/g,
]
