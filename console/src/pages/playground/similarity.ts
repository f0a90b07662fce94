/** Compares vectors by the cosine of the angle between them. */
export function similarities(vectors: number[][]): number[][] {
  const lengths = vectors.map((vector) => Math.hypot(...vector))
  return vectors.map((one, row) =>
    vectors.map((other, column) => {
      const size = (lengths[row] ?? 0) * (lengths[column] ?? 0)
      return size === 0 ? 0 : dot(one, other) / size
    }),
  )
}

const dot = (one: number[], other: number[]): number =>
  one.reduce((sum, value, index) => sum + value * (other[index] ?? 0), 0)
