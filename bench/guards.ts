/** Measures guards: 100 and more rules over 4 KB of prose, and texts of 200 KB that are made to take long. */
import { rulesOf } from '../src/calls/guards/rules.ts'

const ROUNDS = 1_000
const own = Array.from({ length: 50 }, (_, number) => `project-${number}[a-z]{3,8}`)
const rules = rulesOf({ kind: 'patterns', sets: ['secrets', 'personal_data'], patterns: own })

const sentence = 'The quick brown fox jumps over 12 lazy dogs, while ann@ works at 10:30 on Project X. '
const prose = sentence.repeat(50).slice(0, 4096)

function timed(text: string): number {
  const started = performance.now()
  rules.find(text)
  return performance.now() - started
}

for (let round = 0; round < ROUNDS; round++) timed(prose)
const times = Array.from({ length: ROUNDS }, () => timed(prose)).sort((one, other) => one - other)
const at = (share: number) => (times[Math.floor(share * (ROUNDS - 1))] ?? 0).toFixed(3)
process.stdout.write(`4 KB of prose: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms\n`)

const HARD = { prose: sentence, letters: 'a', digits: '1', 'half addresses': 'a@', 'half phone numbers': '+1 1 1 1 ' }
for (const [name, piece] of Object.entries(HARD)) {
  const text = piece.repeat(Math.ceil(200_000 / piece.length))
  process.stdout.write(`200 KB of ${name}: ${timed(text).toFixed(1)} ms\n`)
}
