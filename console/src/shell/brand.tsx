/** The name and the mark. */
export function Brand() {
  return (
    <span className="brand">
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <path fill="currentColor" d="M2 15V7a6 6 0 0 1 12 0v8h-3V8a3 3 0 0 0-6 0v7z" />
      </svg>
      Gatehouse
    </span>
  )
}
