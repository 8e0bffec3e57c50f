using System;
using System.Collections.Generic;
using static System.Math;
using Json = System.Text.Json;

namespace Harbour.Cranes
{
    /// <summary>Lifts containers.</summary>
    [Serializable]
    public abstract partial class Crane<TLoad> : Machine<TLoad>, IDisposable, Yard.ILockable
        where TLoad : class, ILoad
    {
        public const int MaxTons = 60;
        private readonly Dictionary<string, TLoad> _loads = new(), _spare = new();
        public event EventHandler<LiftArgs> Lifted;

        public string Name { get; set; } = "crane";
        public int Count => _loads.Count;

        public TLoad this[string code]
        {
            get => _loads[code];
        }

        protected Crane(string name) : base(name)
        {
            Name = name ?? throw new ArgumentNullException(nameof(name));
        }

        ~Crane() => Dispose();

        public abstract Task<bool> LiftAsync(TLoad load, CancellationToken token);

        public static Crane<TLoad> operator +(Crane<TLoad> left, Crane<TLoad> right) => left;

        void IDisposable.Dispose()
        {
            int Weigh(TLoad load) => Max(load.Tons, 1);
            Lifted?.Invoke(this, new LiftArgs(Weigh(null)));
            GetService<ILog>().Write<string>("done");
        }

        public delegate void Signal(int level);

        private enum State : byte
        {
            Idle,
            Lifting = 2,
        }
    }

    public record Container(string Code, int Tons) : Box(Code), ILoad;

    public readonly struct Point : IEquatable<Point>
    {
        public readonly int X;

        public bool Equals(Point other) => X == other.X;
    }

    public interface ILoad
    {
        int Tons { get; }

        void Mark(string text);
    }
}
