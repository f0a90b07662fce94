import { describe, expect, test } from 'bun:test'
import { embedText, embedTokens } from './embed.ts'

const cosine = (one: number[], other: number[]) => one.reduce((sum, value, at) => sum + value * (other[at] ?? 0), 0)
const likeness = (one: string, other: string, dimensions = 1024) =>
  cosine(embedText(one, dimensions), embedText(other, dimensions))

describe('embeddings of similar texts are closer', () => {
  test.each([
    ['The cat sleeps on the sofa', 'A cat is sleeping on a sofa', 'The stock market fell on Monday'],
    ['How do I reset my password?', 'Resetting a forgotten password', 'Which museums are open on Sunday?'],
    ['Snow melts in spring', 'In spring the snow is melting', 'Ships need deep harbours'],
    ['The invoice was paid late', 'Late payment of invoices', 'Trees lose their leaves in autumn'],
    ['Bake bread with yeast and flour', 'Bread is baked from flour, water and yeast', 'Repairing a bicycle tyre'],
    ['PostgreSQL connection refused', 'postgres refuses connections', 'The orchestra plays Mozart'],
    ['Der Zug fährt nach Berlin', 'Züge nach Berlin fahren stündlich', 'Das Rezept braucht drei Eier'],
    ['Le chat dort sur le canapé', 'Un chat dort sur un canapé', 'La bourse a chuté lundi'],
    ['Москва столица России', 'Столица России это Москва', 'Рецепт борща со сметаной'],
    ['colour of the sky', 'the color of the skies', 'a recipe for onion soup'],
    ['error: undefined is not a function', 'TypeError: undefined is not a function', 'garden flowers need water'],
    ['12 boats left the harbour', 'Boats leaving the harbor', 'Twelve monkeys'],
  ])('%j: %j before %j', (text, near, far) => {
    for (const dimensions of [256, 1024, 4096]) {
      expect(likeness(text, near, dimensions)).toBeGreaterThan(likeness(text, far, dimensions) + 0.1)
    }
  })

  test('the order of words matters, but less than the words', () => {
    const same = likeness('the dog bites the man', 'the man bites the dog')
    expect(same).toBeLessThan(0.999)
    expect(same).toBeGreaterThan(0.6)
  })

  test('texts without common features are nearly orthogonal', () => {
    expect(Math.abs(likeness('granite quarry permits', 'violin lessons online', 4096))).toBeLessThan(0.15)
  })
})

describe('a vector', () => {
  test.each(['A river in spring', '', ' ', ':-)', 'a', '漢字', 'x'.repeat(10_000)])('of %j has unit length', (text) => {
    for (const dimensions of [1, 2, 7, 1024, 4096]) {
      const vector = embedText(text, dimensions)
      expect(vector).toHaveLength(dimensions)
      expect(cosine(vector, vector)).toBeCloseTo(1, 10)
    }
  })

  test('is the same every time', () => {
    expect(embedText('A river in spring', 64)).toEqual(embedText('A river in spring', 64))
  })

  test('differs between texts of symbols only', () => {
    expect(likeness('=>', '=>')).toBeCloseTo(1, 10)
    expect(likeness('=>', ':-(')).toBeLessThan(0.5)
  })
})

test('token lists with common ids are closer', () => {
  const vectors = [[101, 5, 9, 22, 7].slice(), [101, 5, 9, 22, 8], [300, 301, 302, 303, 304]].map((tokens) =>
    embedTokens(tokens, 1024),
  )
  const [one = [], near = [], far = []] = vectors
  expect(cosine(one, near)).toBeGreaterThan(cosine(one, far) + 0.3)
  expect(cosine(one, one)).toBeCloseTo(1, 10)
})
