/**
 * The recipes of examples/10-algorithms, by the name of the file. To add an algorithm, write a recipe and an entry
 * here. Formulas: core/rl has them in full.
 */
import { absent, expect } from './checks.ts';
import type { AlgorithmEntry } from './entry.ts';

/** The ratio left the clip range somewhere, so the loss differs from a plain policy gradient. */
const clips = expect('sum of', 'actor/pg_clipfrac', '>', 0);
/**
 * Whitening over the tokens of the batch leaves the mean 0. Advantages of groups do not have it, because lengths
 * differ.
 */
const zeroTokenMean = expect('largest size of', 'critic/advantages/mean', '<', 1e-5);
const criticExplains = expect('highest', 'critic/vf_explained_var', '>=', 0.3);

export const ENTRIES: Readonly<Record<string, AlgorithmEntry>> = {
  cispo: {
    name: 'CISPO',
    formula: 'L = −sg(min(ρ, 1 + ε))·A·log π: the bound holds for the weight, and every token keeps its gradient',
    paper: { by: 'MiniMax', year: 2025, arxiv: '2506.13585' },
    mechanism: [clips],
  },
  dapo: {
    name: 'DAPO',
    formula:
      'as GRPO, with clip(ρ, 1 − 0.2, 1 + 0.28), r − penalty for length, and no group whose scores are all equal',
    paper: { by: 'Yu et al.', year: 2025, arxiv: '2503.14476' },
    mechanism: [
      clips,
      expect('sum of', 'record/draws_filtered', '>', 0),
      expect('sum of', 'record/draws_refilled', '>', 0),
      expect('sum of', 'reward_extra/overlong/mean', '>', 0),
    ],
  },
  distillation: {
    name: 'On-policy distillation',
    formula: 'L = k3 estimate of KL(π ‖ π_teacher) at each token of the own responses; no rewards',
    paper: { by: 'Agarwal et al.', year: 2023, arxiv: '2306.13649' },
    needs: { recipe: 'grpo', key: 'distillation.teacher_model.model_path' },
    mechanism: [expect('last / first of', 'distillation/abs_loss', '<=', 0.5)],
  },
  dpo: {
    name: 'DPO',
    formula: 'L = −log σ(β·(log π/π_ref of the chosen − log π/π_ref of the rejected response)), pairs given',
    paper: { by: 'Rafailov et al.', year: 2023, arxiv: '2305.18290' },
    result: { metric: 'val-core/sums/acc/mean@1', atLeast: 0.8 },
    mechanism: [expect('last', 'rewards/margins', '>', 0)],
  },
  'dr-grpo': {
    name: 'Dr. GRPO',
    formula: 'A = s − mean of the group; L = Σ over tokens / a constant, mean over responses',
    paper: { by: 'Liu et al.', year: 2025, arxiv: '2503.20783' },
    // One of 8 right: 1 − 1/8. Divided by the standard deviation it would be 2.47.
    mechanism: [clips, expect('highest', 'critic/advantages/max', '<=', 0.8751)],
  },
  flowrl: {
    name: 'FlowRL',
    formula:
      'L = w·(log Z + mean log π − 5·mean A − mean log π_ref)², w importance weight, Z of a model beside the policy',
    paper: { by: 'Zhu et al.', year: 2025, arxiv: '2509.15207' },
    // The model of log Z begins at 0.
    mechanism: [
      expect('first', 'actor/log_z', '<=', 0),
      expect('largest size of', 'actor/log_z', '>', 0.1),
      expect('last / first of', 'log_z/loss', '<', 1),
    ],
  },
  gmpo: {
    name: 'GMPO',
    formula: 'L = −A·exp(mean over tokens of clip(log ρ)), clipped on the side that A pushes to',
    paper: { by: 'Zhao et al.', year: 2025, arxiv: '2507.20673' },
    mechanism: [clips, expect('sum of', 'actor/pg_clipfrac_lower', '>', 0)],
  },
  gpg: {
    name: 'GPG',
    formula: 'A = α·(s − mean of the group), α = responses / responses with s ≠ 0; L = −A·log π',
    paper: { by: 'Chu et al.', year: 2025, arxiv: '2504.02546' },
    // Without α no advantage exceeds 0.875.
    mechanism: [absent('actor/pg_clipfrac'), expect('first', 'critic/advantages/max', '>', 0.876)],
  },
  grpo: {
    name: 'GRPO',
    formula: 'A = (s − mean of the group) / standard deviation of the group',
    paper: { by: 'Shao et al.', year: 2024, arxiv: '2402.03300' },
    mechanism: [clips, expect('highest', 'critic/advantages/max', '>', 1)],
  },
  'grpo-passk': {
    name: 'GRPO, pass@k',
    formula: 'A = (best − second best) / standard deviation of the group for the best response, 0 for the others',
    paper: { by: 'Tang et al.', year: 2025, arxiv: '2503.19595' },
    mechanism: [
      clips,
      expect('lowest', 'critic/advantages/min', '>=', 0),
      expect('highest', 'critic/advantages/max', '>', 2.8),
    ],
  },
  gspo: {
    name: 'GSPO',
    formula: 'ρ = exp(mean over tokens of log π − log π_old), one for the response; clipped as in PPO',
    paper: { by: 'Zheng et al.', year: 2025, arxiv: '2507.18071' },
    // Whole responses are clipped, so many more tokens are than with a ratio of each.
    mechanism: [expect('highest', 'actor/pg_clipfrac', '>=', 0.1)],
  },
  gvpo: {
    name: 'GVPO',
    formula: 'L = ½·Σ (R − mean of R over the group − A)² / (n − 1), R = β·(log π − log π_old) of the response',
    paper: { by: 'Zhang et al.', year: 2025, arxiv: '2504.19599' },
    // The regression has no clip range.
    mechanism: [absent('actor/pg_clipfrac'), expect('highest', 'critic/advantages/max', '>', 1)],
  },
  'online-dpo': {
    name: 'Online DPO',
    formula: 'L = −log σ(β·(log π/π_ref of the better response − log π/π_ref of the other))',
    paper: { by: 'Guo et al.', year: 2024, arxiv: '2402.04792' },
    mechanism: [absent('actor/pg_clipfrac'), expect('highest', 'actor/dpo_margin', '>', 0)],
  },
  opo: {
    name: 'OPO',
    formula: 'A = s − Σ length·s / Σ length over the group',
    paper: { by: 'Hao et al.', year: 2025, arxiv: '2505.23585' },
    // The weights make advantages add up to 0 over the tokens of each group, and so of the batch.
    mechanism: [clips, zeroTokenMean],
  },
  otb: {
    name: 'OTB',
    formula: 'A = G − Σ G·W / Σ W over the group at each position; G reward to go, W variance of the gradient so far',
    paper: { by: 'Li et al.', year: 2026, arxiv: '2602.07078' },
    mechanism: [clips],
  },
  'pf-ppo': {
    name: 'PF-PPO',
    formula: 'as PPO, on responses drawn again with weights by s: here 0.4 for the highest s, 0.1 for others',
    paper: { by: 'Shen and Zhang', year: 2024, arxiv: '2409.06957' },
    // Of 512 responses, drawn again as many times, about a third are not drawn at all.
    mechanism: [
      criticExplains,
      clips,
      expect('highest', 'training/drawn_samples', '<', 400),
      expect('lowest', 'training/drawn_samples', '>', 200),
    ],
  },
  ppo: {
    name: 'PPO',
    formula: 'A = Σ (γλ)^k·(r + γV′ − V), whitened; L = −min(ρA, clip(ρ, 1 ± ε)·A); the critic learns A + V',
    paper: { by: 'Schulman et al.', year: 2017, arxiv: '1707.06347' },
    mechanism: [criticExplains, clips, zeroTokenMean, expect('last / first of', 'critic/vf_loss', '<', 0.5)],
  },
  'ppo-on-reward-model': {
    name: 'PPO on a reward model',
    formula: 'as PPO, with s from the model of the recipe rm, and a KL loss; accuracy is only measured',
    paper: { by: 'Ouyang et al.', year: 2022, arxiv: '2203.02155' },
    needs: { recipe: 'rm', key: 'reward.reward_model.path' },
    mechanism: [clips, expect('largest size of', 'reward_extra/reward_model/mean', '>', 0)],
  },
  prime: {
    name: 'PRIME',
    formula:
      'r = β·log(π_rm/π_ref) of each token; A = 5·RLOO of Σ r + 5·RLOO of s, whitened; π_rm learns s by cross entropy',
    paper: { by: 'Cui et al.', year: 2025, arxiv: '2502.01456' },
    mechanism: [
      clips,
      // Of two responses it prefers the right one; an untrained one does so in half of the pairs.
      expect('highest', 'reward_model/dpo_acc', '>=', 0.8),
      expect('sum of', 'record/draws_filtered', '>', 0),
    ],
  },
  'reinforce-plus-plus': {
    name: 'REINFORCE++',
    formula: 'A = discounted reward to go of the token, whitened over the batch',
    paper: { by: 'Hu', year: 2025, arxiv: '2501.03262' },
    mechanism: [clips, zeroTokenMean],
  },
  'reinforce-plus-plus-baseline': {
    name: 'REINFORCE++ with baseline',
    formula: 'A = s − mean of the group, whitened over the batch',
    paper: { by: 'Hu', year: 2025, arxiv: '2501.03262' },
    mechanism: [clips, zeroTokenMean, expect('highest', 'critic/advantages/max', '>', 1)],
  },
  remax: {
    name: 'ReMax',
    formula: 'A = s − score of the greedy response to the prompt',
    paper: { by: 'Li et al.', year: 2023, arxiv: '2310.10505' },
    // 0 and 1 against 1 and 0.
    mechanism: [
      clips,
      expect('first', 'critic/advantages/max', '>', 0.9999),
      expect('first', 'critic/advantages/min', '<', -0.9999),
    ],
  },
  rm: {
    name: 'Reward model',
    formula: 'L = −log σ(r of the chosen − r of the rejected response), r a score of the last token',
    paper: { by: 'Ouyang et al.', year: 2022, arxiv: '2203.02155' },
    result: { metric: 'val-core/sums/acc/mean@1', atLeast: 0.8 },
    mechanism: [expect('last / first of', 'reward_model/loss', '<', 0.8)],
  },
  rloo: {
    name: 'RLOO',
    formula: 'A = s − mean of the other responses to the prompt',
    paper: { by: 'Ahmadian et al.', year: 2024, arxiv: '2402.14740' },
    // The only right response has A = 1, since its own score is not in the mean.
    mechanism: [
      clips,
      expect('first', 'critic/advantages/max', '>', 0.9999),
      expect('highest', 'critic/advantages/max', '<', 1.0001),
    ],
  },
  sapo: {
    name: 'SAPO',
    formula: 'L = −A·(4/τ)·σ(τ·(ρ − 1)), τ by the sign of A',
    paper: { by: 'Gao et al.', year: 2025, arxiv: '2511.20347' },
    // No token is clipped although ratios move.
    mechanism: [expect('sum of', 'actor/pg_clipfrac', '<=', 0), expect('largest size of', 'actor/ppo_kl', '>', 0.001)],
  },
  spo: {
    name: 'SPO',
    formula:
      'A = s − α/(α + β), whitened; α ← ρα + s, β ← ρβ + 1 − s for the question; ρ is less, the more π has moved',
    paper: { by: 'Xu and Ding', year: 2025, arxiv: '2509.13232' },
    mechanism: [
      clips,
      // Questions come back, and the past counts less when the policy has moved.
      expect('last', 'spo/first_sampled_ratio', '<', 1),
      expect('lowest', 'spo/rho_clipped', '<', 0.95),
      expect('last / first of', 'spo/p_hats', '>', 1.2),
      expect('sum of', 'record/draws_passed_over', '>', 0),
    ],
  },
  sppo: {
    name: 'SPPO',
    formula: 'A = s − log mean exp(s) over the batch; L = (log π/π_old of the response − A)²',
    paper: { by: 'Wu et al.', year: 2024, arxiv: '2405.00675' },
    mechanism: [
      absent('actor/pg_clipfrac'),
      expect('largest size of', 'actor/log_ratio_mean', '>', 0.001),
      expect('last / first of', 'actor/pg_loss', '<', 0.8),
    ],
  },
  vapo: {
    name: 'VAPO',
    formula:
      'as PPO, with λ = 1 for the critic and max(0, 1 − 1/(α·length)) for the policy, ε larger above, − 0.1·mean log π of right answers',
    paper: { by: 'Yue et al.', year: 2025, arxiv: '2504.05118' },
    mechanism: [
      criticExplains,
      clips,
      expect('last / first of', 'critic/vf_loss', '<', 0.6),
      expect('last / first of', 'actor/positive_nll_loss', '<', 0.8),
    ],
  },
};
